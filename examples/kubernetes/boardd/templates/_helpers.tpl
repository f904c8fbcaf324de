{{- define "boardd.name" -}}
{{- if contains "boardd" .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-boardd" .Release.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "boardd.selector" -}}
app.kubernetes.io/name: boardd
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: server
{{- end }}

{{- define "boardd.labels" -}}
{{ include "boardd.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- /* Of a worker's pods: of its name and that of the release. */ -}}
{{- define "boardd.worker" -}}
app.kubernetes.io/name: boardd
app.kubernetes.io/instance: {{ .release }}
app.kubernetes.io/component: worker-{{ .name }}
{{- end }}

{{- define "boardd.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "boardd.scheme" -}}
{{ if .Values.tls.secret }}https{{ else }}http{{ end }}
{{- end }}

{{- /* The Service's name in full, for callers in other namespaces. */ -}}
{{- define "boardd.host" -}}
{{ include "boardd.name" . }}.{{ .Release.Namespace }}.svc.{{ .Values.clusterDomain }}
{{- end }}

{{- /* Every name that a caller may use, as a list of JSON, which HCL reads. */ -}}
{{- define "boardd.hostnames" -}}
{{- $name := include "boardd.name" . }}
{{- $names := list $name (printf "%s.%s" $name .Release.Namespace) (printf "%s.%s.svc" $name .Release.Namespace) (include "boardd.host" .) }}
{{- if .Values.persistence.enabled }}
{{- range $i := until (int .Values.replicas) }}
{{- $names = append $names (printf "%s-%d.%s-pods.%s.svc.%s" $name $i $name $.Release.Namespace $.Values.clusterDomain) }}
{{- end }}
{{- end }}
{{- if .Values.ingress.enabled }}{{ $names = append $names .Values.ingress.host }}{{ end }}
{{- if .Values.httpRoute.enabled }}{{ $names = concat $names .Values.httpRoute.hostnames }}{{ end }}
{{- concat $names .Values.hostnames | uniq | toJson }}
{{- end }}

{{- /* The Secrets that are mounted, each in a folder of its own below /run/secrets. */ -}}
{{- define "boardd.secrets" -}}
{{- $all := dict "root" .Values.tokens.root }}
{{- if .Values.tokens.metrics.secret }}{{ $_ := set $all "metrics" .Values.tokens.metrics }}{{ end }}
{{- if eq .Values.store.kind "redis" }}
{{- if .Values.store.redis.password.secret }}{{ $_ := set $all "store" .Values.store.redis.password }}{{ end }}
{{- if .Values.store.redis.ca.secret }}{{ $_ := set $all "store-ca" .Values.store.redis.ca }}{{ end }}
{{- else if eq .Values.store.kind "postgres" }}
{{- if .Values.store.postgres.passfile.secret }}{{ $_ := set $all "store" .Values.store.postgres.passfile }}{{ end }}
{{- if .Values.store.postgres.ca.secret }}{{ $_ := set $all "store-ca" .Values.store.postgres.ca }}{{ end }}
{{- end }}
{{- toJson $all }}
{{- end }}

{{- define "boardd.hardened" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{- define "boardd.config" -}}
# Made by the chart; the value "config" is at its end.
listen      = "0.0.0.0:7422"
data_dir    = "/var/lib/boardd"
plugin_dir  = "/usr/lib/boardd/plugins"
hostnames   = {{ include "boardd.hostnames" . }}
drain_delay = "{{ .Values.drainSeconds }}s"
{{- if .Values.tls.secret }}
tls {
  cert_file = "/run/secrets/tls/tls.crt"
  key_file  = "/run/secrets/tls/tls.key"
}
{{- else }}
insecure_plaintext = true
{{- end }}
token "root" {
  roles  = ["operator"]
  secret = file("/run/secrets/root/token")
}
{{- if .Values.tokens.metrics.secret }}
token "metrics" {
  roles  = ["metrics"]
  secret = file("/run/secrets/metrics/token")
}
{{- end }}
catalog {
  backend = "main"
}
backend "main" {
{{- with .Values.store }}
{{- if eq .kind "embedded" }}
  driver = "embedded"
{{- else if eq .kind "redis" }}
  driver = "redis"
  config = {
    address  = {{ .redis.address | toJson }}
    {{- with .redis.username }}
    username = {{ . | toJson }}
    {{- end }}
    {{- if .redis.password.secret }}
    password = file("/run/secrets/store/password")
    {{- end }}
    {{- if .redis.tls }}
    tls      = { {{- if .redis.ca.secret }} ca_file = "/run/secrets/store-ca/ca.crt" {{ end -}} }
    {{- end }}
  }
{{- else }}
  driver = "postgres"
  {{- $query := list }}
  {{- if .postgres.passfile.secret }}{{ $query = append $query "passfile=/run/secrets/store/passfile" }}{{ end }}
  {{- if .postgres.ca.secret }}{{ $query = append $query "sslrootcert=/run/secrets/store-ca/ca.crt" }}{{ end }}
  {{- $url := .postgres.url }}
  {{- if $query }}{{ $url = printf "%s%s%s" $url (ternary "&" "?" (contains "?" $url)) (join "&" $query) }}{{ end }}
  config = {
    url = "{{ $url }}"
  }
{{- end }}
{{- end }}
}
{{ .Values.config }}
{{- end }}

{{- define "boardd.pod" -}}
metadata:
  labels:
    {{- include "boardd.labels" . | nindent 4 }}
  annotations:
    checksum/config: {{ include "boardd.config" . | sha256sum }}
    {{- with .Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  automountServiceAccountToken: false
  enableServiceLinks: false
  # It goes on with calls for the drain, lets them end for 15 seconds, and then its drivers.
  terminationGracePeriodSeconds: {{ add 35 .Values.drainSeconds }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    fsGroup: 65532
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile:
      type: RuntimeDefault
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  containers:
    - name: boardd
      image: {{ include "boardd.image" . | quote }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args: [serve, --config, /etc/boardd, --log-format, json]
      ports:
        - name: http
          containerPort: 7422
      # A store that is away is no reason to start boardd anew, so its life is /healthz.
      startupProbe:
        httpGet: {path: /healthz, port: http, scheme: {{ include "boardd.scheme" . | upper }}}
        periodSeconds: 2
        timeoutSeconds: 5
        failureThreshold: 60
      livenessProbe:
        httpGet: {path: /healthz, port: http, scheme: {{ include "boardd.scheme" . | upper }}}
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      readinessProbe:
        httpGet: {path: /readyz, port: http, scheme: {{ include "boardd.scheme" . | upper }}}
        periodSeconds: 5
        timeoutSeconds: 5
        failureThreshold: 2
      securityContext:
        {{- include "boardd.hardened" . | nindent 8 }}
      resources:
        {{- toYaml .Values.resources | nindent 8 }}
      volumeMounts:
        - {name: config, mountPath: /etc/boardd, readOnly: true}
        - {name: data, mountPath: /var/lib/boardd}
        - {name: tmp, mountPath: /tmp}
        {{- range $name, $_ := include "boardd.secrets" . | fromJson }}
        - {name: secret-{{ $name }}, mountPath: /run/secrets/{{ $name }}, readOnly: true}
        {{- end }}
        {{- if .Values.tls.secret }}
        - {name: tls, mountPath: /run/secrets/tls, readOnly: true}
        {{- end }}
  volumes:
    - name: config
      configMap:
        name: {{ include "boardd.name" . }}
    - name: tmp # the sockets to its drivers
      emptyDir: {sizeLimit: 64Mi}
    {{- if not .Values.persistence.enabled }}
    - name: data
      emptyDir: {}
    {{- end }}
    {{- $paths := dict "root" "token" "metrics" "token" "store-ca" "ca.crt" "store" (ternary "password" "passfile" (eq .Values.store.kind "redis")) }}
    {{- range $name, $from := include "boardd.secrets" . | fromJson }}
    - name: secret-{{ $name }}
      secret:
        secretName: {{ $from.secret }}
        defaultMode: 0440
        items:
          - {key: {{ $from.key }}, path: {{ get $paths $name }}}
    {{- end }}
    {{- with .Values.tls.secret }}
    - name: tls
      secret:
        secretName: {{ . }}
        defaultMode: 0440
    {{- end }}
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "boardd.selector" . | nindent 10 }}
  {{- range $key := list "nodeSelector" "tolerations" "affinity" }}
  {{- with index $.Values $key }}
  {{ $key }}:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- end }}
{{- end }}
