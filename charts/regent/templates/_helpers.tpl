{{- define "regent.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "regent.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- $name := include "regent.name" . }}
{{- if contains $name .Release.Name }}
{{- .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- end }}
{{- end }}

{{- define "regent.selectorLabels" -}}
app.kubernetes.io/name: {{ include "regent.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- /* The same for kubectl -l. */}}
{{- define "regent.selector" -}}
app.kubernetes.io/name={{ include "regent.name" . }},app.kubernetes.io/instance={{ .Release.Name }}
{{- end }}

{{- define "regent.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "regent.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "regent.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "regent.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "regent.endpointName" -}}
{{- printf "%s-endpoint" (include "regent.fullname" . | trunc 54 | trimSuffix "-") }}
{{- end }}

{{- define "regent.exchangeName" -}}
{{- printf "%s-exchange" (include "regent.fullname" . | trunc 54 | trimSuffix "-") }}
{{- end }}

{{- define "regent.exchangeUrl" -}}
{{- $scheme := ternary "https" "http" (not (empty (dig "planner_exchange_tls_certificate_file" "" (default dict .Values.settings)))) }}
{{- printf "%s://%s.%s.svc:%d" $scheme (include "regent.exchangeName" .) .Release.Namespace (int .Values.planner.spark.port) }}
{{- end }}

{{- define "regent.image" -}}
{{- if .Values.image.digest }}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest }}
{{- else }}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) }}
{{- end }}
{{- end }}

{{- /* A name for objects outside the release's namespace: two releases of the same name must not meet.
Not cut off: roles and bindings may have longer names than what becomes a label or a host. */}}
{{- define "regent.clusterName" -}}
{{- printf "%s-%s" .Release.Namespace (include "regent.fullname" .) }}
{{- end }}

{{- /* Names in templates/evictions.yaml. */}}
{{- define "regent.evictionsName" -}}
{{- printf "%s-evictions" (include "regent.fullname" . | trunc 53 | trimSuffix "-") }}
{{- end }}

{{- define "regent.unreadyEvictionsName" -}}
{{- printf "%s-evictions-unready" (include "regent.fullname" . | trunc 45 | trimSuffix "-") }}
{{- end }}

{{- define "regent.evictionsCertificate" -}}
{{- default (printf "%s-tls" (include "regent.evictionsName" .)) .Values.evictionHook.certificates.secretName }}
{{- end }}

{{- /* Where BrokerDrains are made for evictions. */}}
{{- define "regent.drainNamespace" -}}
{{- $served := .Values.namespaces }}
{{- $default := .Release.Namespace }}
{{- if and $served (not (has .Release.Namespace $served)) }}
{{- $default = first $served }}
{{- end }}
{{- default $default .Values.evictionHook.drainNamespace }}
{{- end }}

{{- /* Names in templates/sampling.yaml. A CronJob's name has 52 characters at most. */}}
{{- define "regent.samplingName" -}}
{{- printf "%s-sample" (include "regent.fullname" . | trunc 45 | trimSuffix "-") }}
{{- end }}

{{- define "regent.historyClaim" -}}
{{- default (printf "%s-history" (include "regent.fullname" . | trunc 55 | trimSuffix "-")) .Values.sampling.volume.existingClaim }}
{{- end }}

{{- define "regent.samplingImage" -}}
{{- with .Values.sampling.image }}
{{- if .digest }}
{{- printf "%s@%s" .repository .digest }}
{{- else }}
{{- printf "%s:%s" .repository (default $.Chart.AppVersion .tag) }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Not the labels of the Deployment: its selector must not match these pods. */}}
{{- define "regent.samplingLabels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/name: {{ printf "%s-sample" (include "regent.name" . | trunc 56 | trimSuffix "-") | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- /* Names in templates/release-topics.yaml. */}}
{{- define "regent.releaseName" -}}
{{- printf "%s-release" (include "regent.fullname" . | trunc 55 | trimSuffix "-") }}
{{- end }}

{{- define "regent.releaseClusterName" -}}
{{- printf "%s-release" (include "regent.clusterName" .) }}
{{- end }}

{{- /* Not the labels of the Deployment: its selector must not match the hook's pod. */}}
{{- define "regent.releaseLabels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/name: {{ printf "%s-release" (include "regent.name" . | trunc 55 | trimSuffix "-") }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- /* Who a definition belongs to, if it exists and this release has not installed it. */}}
{{- define "regent.foreignCrd" -}}
{{- $found := lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" .name }}
{{- if $found }}
{{- $annotations := default dict $found.metadata.annotations }}
{{- $owner := printf "%s/%s" (default "" (get $annotations "meta.helm.sh/release-namespace")) (default "" (get $annotations "meta.helm.sh/release-name")) }}
{{- if ne $owner (printf "%s/%s" .release.Namespace .release.Name) }}
{{- if eq $owner "/" }}somebody without Helm{{ else }}the release {{ $owner }}{{ end }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Commands that release the KafkaTopics that the release has served so far, by its ConfigMap in the
cluster, and does not serve any more. Without a cluster there are none. */}}
{{- define "regent.releasesOfUnserved" -}}
{{- with lookup "v1" "ConfigMap" .Release.Namespace (include "regent.fullname" .) }}
{{- $former := dig "data" "settings.yaml" "" . | fromYaml }}
{{- $formerName := dig "cluster_name" "" $former }}
{{- $isDefault := or (empty $formerName) (dig "default_cluster" false $former) }}
{{- $formerNamespaces := dig "namespaces" list $former }}
{{- $cluster := $.Values.cluster }}
{{- $options := list }}
{{- with $.Values.namespaces }}
{{- $left := list "NAMESPACE" }}
{{- if $formerNamespaces }}
{{- $left = without $formerNamespaces "" }}
{{- range . }}
{{- $left = without $left . }}
{{- end }}
{{- end }}
{{- if $left }}
{{- $options = append $options (dict "namespaces" $left "name" $formerName "default" $isDefault) }}
{{- end }}
{{- end }}
{{- $losesName := and $formerName (ne $formerName $cluster.name) }}
{{- $losesDefault := and $isDefault $cluster.name (not $cluster.default) }}
{{- if or $losesName $losesDefault }}
{{- $options = append $options (dict "namespaces" $formerNamespaces "name" (ternary $formerName "" (not (empty $losesName))) "default" $losesDefault) }}
{{- end }}
{{- $commands := list }}
{{- range $options }}
{{- $command := "regent release --all" }}
{{- range .namespaces }}{{ $command = printf "%s --namespace %s" $command . }}{{ end }}
{{- with .name }}{{ $command = printf "%s --cluster-name %s" $command . }}{{ end }}
{{- if and .name .default }}{{ $command = printf "%s --default-cluster" $command }}{{ end }}
{{- $commands = append $commands $command }}
{{- end }}
{{- $commands | uniq | join "\n" }}
{{- end }}
{{- end }}

{{- /* The rights of Regent in the namespaces it serves. */}}
{{- define "regent.rules" -}}
- apiGroups: [kafka.regent.dev]
  resources: [kafkatopics, partitionreassignments, brokerdrains]
  # patch: for the finalizer, which is among the metadata.
  verbs: [get, list, watch, patch]
- apiGroups: [kafka.regent.dev]
  resources: [partitionreassignments]
  # those whose spec.ttlSecondsAfterFinished is over
  verbs: [delete]
- apiGroups: [kafka.regent.dev]
  resources: [kafkatopics/status, partitionreassignments/status, brokerdrains/status]
  verbs: [patch]
- apiGroups: [""]
  resources: [events]
  verbs: [create]
{{- if .Values.planner.spark.enabled }}
- apiGroups: [sparkoperator.k8s.io]
  resources: [sparkapplications]
  verbs: [get, list, create, delete]
- apiGroups: [""]
  resources: [secrets]
  # Written once, and never read.
  verbs: [create]
- apiGroups: [""]
  resources: [pods/log]
  verbs: [get]
{{- end }}
{{- end }}

{{- /* Ports of the ZooKeeper servers, as a list; 2181 where none is given, as for Kafka. */}}
{{- define "regent.zookeeperPorts" -}}
{{- $ports := list }}
{{- range splitList "," (first (splitList "/" .Values.zookeeper)) }}
{{- $port := regexFind ":[0-9]+$" . | trimPrefix ":" | default "2181" }}
{{- $ports = append $ports (int $port) }}
{{- end }}
{{- toYaml ($ports | uniq) }}
{{- end }}

{{- /* Egress of a NetworkPolicy that every pod of the release needs: names. */}}
{{- define "regent.dnsEgress" -}}
- ports:
    - {port: 53, protocol: UDP}
    - {port: 53, protocol: TCP}
  {{- with .Values.networkPolicy.dns.to }}
  to:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}

{{- /* Of Regent's pods: names, and the API server. */}}
{{- define "regent.commonEgress" -}}
{{ include "regent.dnsEgress" . }}
{{ include "regent.egressRule" .Values.networkPolicy.apiServer }}
{{- end }}

{{- /* A rule for some ports (none: all) of some peers (none: all). */}}
{{- define "regent.egressRule" -}}
{{- $rule := dict }}
{{- with .ports }}
{{- $ports := list }}
{{- range . }}
{{- $ports = append $ports (dict "port" (int .) "protocol" "TCP") }}
{{- end }}
{{- $_ := set $rule "ports" $ports }}
{{- end }}
{{- with .to }}
{{- $_ := set $rule "to" . }}
{{- end }}
{{- toYaml (list $rule) }}
{{- end }}

{{- /* Combinations of values that the schema cannot judge. */}}
{{- define "regent.checkedValues" -}}
{{- with .Values }}
{{- /* As regent.zookeeper.settings has it: what looks like the next server, in a chroot. */}}
{{- if regexMatch "/.*,[^/,]+(/|:[0-9]+(,|$))" .zookeeper }}
{{- fail (printf "zookeeper is %q: the chroot stands once, behind the last server" .zookeeper) }}
{{- end }}
{{- if and .endpoint.enabled (or (gt (int .replicas) 1) (ne .strategy.type "Recreate")) }}
{{- $given := dict "endpoint.advertisedHost" .endpoint.advertisedHost }}
{{- range .endpoint.listeners }}
{{- $_ := set $given (printf "advertisedHost of the listener %s in endpoint.listeners" .name) .advertisedHost }}
{{- end }}
{{- $values := . }}
{{- range $what, $host := $given }}
{{- with $host }}
{{- fail (printf "%s is %q, one name for %d pods with the strategy %s: brokers and clients would reach pods that are not the controller. Set replicas to 1 and strategy.type to Recreate, or leave advertisedHost empty: each pod has its own address then" $what . (int $values.replicas) $values.strategy.type) }}
{{- end }}
{{- end }}
{{- end }}
{{- $ports := list (list "http.port" .http.port) }}
{{- if .endpoint.enabled }}
{{- $ports = append $ports (list "endpoint.port" .endpoint.port) }}
{{- $names := dict }}
{{- range .endpoint.listeners }}
{{- if hasKey $names (upper .name) }}
{{- fail (printf "endpoint.listeners has %s twice: Kafka does not tell upper from lower case there. Keep one of the two" .name) }}
{{- end }}
{{- $_ := set $names (upper .name) true }}
{{- $ports = append $ports (list (printf "the port of %s in endpoint.listeners" .name) .port) }}
{{- end }}
{{- end }}
{{- if include "regent.warmStandby" $ }}
{{- $ports = append $ports (list "warmStandby.port" .warmStandby.port) }}
{{- end }}
{{- if .planner.spark.enabled }}
{{- $ports = append $ports (list "planner.spark.port" .planner.spark.port) }}
{{- end }}
{{- if .evictionHook.enabled }}
{{- $ports = append $ports (list "evictionHook.port" .evictionHook.port) }}
{{- end }}
{{- $users := dict }}
{{- range $ports }}
{{- $what := first . }}
{{- $port := int (last .) | toString }}
{{- with get $users $port }}
{{- fail (printf "%s and %s are both %s: a pod cannot listen twice on one port. Choose another one" . $what $port) }}
{{- end }}
{{- $_ := set $users $port $what }}
{{- end }}
{{- if and .planner.spark.enabled (not .planner.spark.images) }}
{{- fail "planner.spark.images is empty: no plan could be made on Spark. Name the planner's image, such as [\"example.test/regent-planner:*\"]" }}
{{- end }}
{{- if and .sampling.enabled (not .sampling.image.repository) }}
{{- fail "sampling.image.repository is empty: Regent's own image cannot write samples. Name an image with Python and regent[history]" }}
{{- end }}
{{- if .evictionHook.enabled }}
{{- if not .evictionHook.brokerPods }}
{{- fail "evictionHook.brokerPods is empty: name labels that the brokers' pods have and no other pods in their namespaces, such as {\"app.kubernetes.io/name\": \"kafka\"}" }}
{{- end }}
{{- if not .evictionHook.podNamespaces }}
{{- fail "evictionHook.podNamespaces is empty: name the namespaces of the brokers' pods" }}
{{- end }}
{{- if and .namespaces .evictionHook.drainNamespace (not (has .evictionHook.drainNamespace .namespaces)) }}
{{- fail (printf "evictionHook.drainNamespace is %q, which is not among namespaces: BrokerDrains there are not served" .evictionHook.drainNamespace) }}
{{- end }}
{{- with .evictionHook.certificates }}
{{- if and .secretName .certManager.enabled }}
{{- fail "evictionHook.certificates has both secretName and certManager: choose one" }}
{{- end }}
{{- if and .secretName (not .caBundle) }}
{{- fail "evictionHook.certificates.secretName needs caBundle: the authority (PEM) that the API server is to trust" }}
{{- end }}
{{- if and .certManager.enabled (not .certManager.issuerRef) }}
{{- fail "evictionHook.certificates.certManager needs issuerRef, such as {\"name\": \"my-issuer\", \"kind\": \"ClusterIssuer\"}" }}
{{- end }}
{{- end }}
{{- end }}
{{- if and (eq .mode "client") (or .endpoint.enabled (dig "warm_standby" false (default dict .settings))) }}
{{- fail "mode is client: nobody asks Regent anything, and there is no term to take over. Set endpoint.enabled to false, and leave warm_standby out of settings" }}
{{- end }}
{{- if .networkPolicy.enabled }}
{{- if and .planner.spark.enabled (not .networkPolicy.planner.from) }}
{{- fail "networkPolicy.planner.from is empty, but planner.spark.enabled is true: drivers could not fetch their tasks. Name their pods, such as [{\"podSelector\": {\"matchLabels\": {\"spark-role\": \"driver\"}}}]" }}
{{- end }}
{{- if and .endpoint.enabled (not .networkPolicy.endpoint.from) }}
{{- fail "networkPolicy.endpoint.from is empty, but endpoint.enabled is true: brokers could not ask their controller. Name the peers from which brokers and clients come, such as [{\"ipBlock\": {\"cidr\": \"10.0.0.0/8\"}}]" }}
{{- end }}
{{- if not (or .networkPolicy.brokers.to .networkPolicy.brokers.ports) }}
{{- fail "networkPolicy.brokers is empty: which addresses and ports brokers have stands in ZooKeeper only. Name their peers in networkPolicy.brokers.to, the ports of their inter-broker listener in networkPolicy.brokers.ports, or both" }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- /* What would have no effect: the chart's own settings win. Null asks for nothing. */}}
{{- define "regent.checkedSettings" -}}
{{- $own := .own }}
{{- if and .endpoint.enabled (not .endpoint.advertisedHost) }}
{{- $own = merge (dict "endpoint_advertised_host" "the address of each pod") $own }}
{{- end }}
{{- range $name, $value := default dict .settings }}
{{- if and (hasKey $own $name) (not (kindIs "invalid" $value)) (ne (toJson $value) (toJson (get $own $name))) }}
{{- fail (printf "settings.%s is %s, which has no effect: the chart's own values make it %s. Leave it out of settings, and change the value that it comes from (see the chart's README)" $name (toJson $value) (toJson (get $own $name))) }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Whether pods know each other; empty if they do not. */}}
{{- define "regent.warmStandby" -}}
{{- if and (eq .Values.mode "controller") (or .Values.warmStandby.enabled (dig "warm_standby" false (default dict .Values.settings))) }}true{{ end }}
{{- end }}
