{{- define "belfry.fullname" -}}
{{- if contains "belfry" .Release.Name }}{{ .Release.Name | trunc 52 | trimSuffix "-" }}{{ else }}{{ printf "%s-belfry" .Release.Name | trunc 52 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "belfry.selector" -}}
app.kubernetes.io/name: belfry
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "belfry.labels" -}}
{{ include "belfry.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "belfry.serviceAccount" -}}
{{ .Values.serviceAccount.name | default (include "belfry.fullname" .) }}
{{- end }}

{{- define "belfry.image" -}}
{{ .Values.image.repository }}{{ if .Values.image.digest }}@{{ .Values.image.digest }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{- /* Settings as they were given, for each process that reads them. */ -}}
{{- define "belfry.settings" -}}
{{- range $setting, $value := .Values.settings }}
- name: BELFRY_{{ upper $setting }}
  value: {{ if kindIs "string" $value }}{{ $value | quote }}{{ else if and (kindIs "float64" $value) (eq (floor $value) $value) }}{{ $value | int64 | quote }}{{ else }}{{ $value | toJson | quote }}{{ end }}
{{- end }}
{{- end }}

{{- /* What cannot work together is said before anything is installed. */ -}}
{{- define "belfry.check" -}}
{{- if lt (int .Values.terminationGracePeriodSeconds) (add (int .Values.preStopSeconds) (div (int (.Values.settings.hand_over_limit_ms | default 3000)) 1000) 30 | int) }}
{{- fail (printf "terminationGracePeriodSeconds is %d, and preStopSeconds (%d), the hand-over and 30 s for the rest take longer: raise it" (int .Values.terminationGracePeriodSeconds) (int .Values.preStopSeconds)) }}
{{- end }}
{{- $given := dict }}
{{- range .Values.secrets }}{{ $_ := set $given .setting true }}{{ end }}
{{- if not (or (hasKey $given "http_api_keys") .Values.settings.http_api_keys_file .Values.settings.oidc_issuer) }}
{{- fail "nobody would be asked for keys, so the HTTP port could not open to other pods: give http_api_keys in secrets, or settings.http_api_keys_file, or settings.oidc_issuer" }}
{{- end }}
{{- if and (eq .Values.http.plaintext "refused") (not .Values.settings.http_tls_certificate) }}
{{- fail "callers would send keys in plain text: give settings.http_tls_certificate and settings.http_tls_key, or say http.plaintext=allowed where something in front ends TLS" }}
{{- end }}
{{- if and (or .Values.strimzi.topics .Values.strimzi.user) (not .Values.strimzi.cluster) }}
{{- fail "strimzi.cluster is empty: give the name of the Kafka resource" }}
{{- end }}
{{- end }}
