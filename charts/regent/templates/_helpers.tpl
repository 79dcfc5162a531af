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

{{- /* Egress of a NetworkPolicy that every pod of the release needs: names, and the API server. */}}
{{- define "regent.commonEgress" -}}
- ports:
    - {port: 53, protocol: UDP}
    - {port: 53, protocol: TCP}
  {{- with .Values.networkPolicy.dns.to }}
  to:
    {{- toYaml . | nindent 4 }}
  {{- end }}
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
{{- if and .endpoint.enabled .endpoint.advertisedHost (or (gt (int .replicas) 1) (ne .strategy.type "Recreate")) }}
{{- fail (printf "endpoint.advertisedHost is %q, one name for %d pods with the strategy %s: brokers would reach pods that are not the controller. Set replicas to 1 and strategy.type to Recreate, or leave advertisedHost empty: each pod has its own address then" .endpoint.advertisedHost (int .replicas) .strategy.type) }}
{{- end }}
{{- if .networkPolicy.enabled }}
{{- if and .endpoint.enabled (not .networkPolicy.endpoint.from) }}
{{- fail "networkPolicy.endpoint.from is empty, but endpoint.enabled is true: brokers could not ask their controller. Name the peers from which brokers and clients come, such as [{\"ipBlock\": {\"cidr\": \"10.0.0.0/8\"}}]" }}
{{- end }}
{{- if not (or .networkPolicy.brokers.to .networkPolicy.brokers.ports) }}
{{- fail "networkPolicy.brokers is empty: which addresses and ports brokers have stands in ZooKeeper only. Name their peers in networkPolicy.brokers.to, the ports of their inter-broker listener in networkPolicy.brokers.ports, or both" }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Whether pods know each other; empty if they do not. */}}
{{- define "regent.warmStandby" -}}
{{- if or .Values.warmStandby.enabled (dig "warm_standby" false (default dict .Values.settings)) }}true{{ end }}
{{- end }}
