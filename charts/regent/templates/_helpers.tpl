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
