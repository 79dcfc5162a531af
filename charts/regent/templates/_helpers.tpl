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
app.kubernetes.io/name: {{ include "regent.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
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

{{- define "regent.image" -}}
{{- if .Values.image.digest }}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest }}
{{- else }}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) }}
{{- end }}
{{- end }}

{{- /* A name for objects without a namespace: two releases of the same name must not meet. */}}
{{- define "regent.clusterName" -}}
{{- printf "%s-%s" .Release.Namespace (include "regent.fullname" .) | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- /* The rights of Regent in the namespaces it serves. */}}
{{- define "regent.rules" -}}
- apiGroups: [kafka.regent.dev]
  resources: [kafkatopics]
  # patch: for the finalizer, which is among the metadata.
  verbs: [get, list, watch, patch]
- apiGroups: [kafka.regent.dev]
  resources: [kafkatopics/status]
  verbs: [patch]
- apiGroups: [""]
  resources: [events]
  verbs: [create]
{{- end }}
