{{/* Envoy's container, which alone sees the providers' credentials and the listener's private key. */}}

{{- define "zurelay.envoy" -}}
name: envoy
image: {{ include "zurelay.image" (list .Values.envoy.image "") | quote }}
imagePullPolicy: {{ .Values.envoy.image.pullPolicy }}
args:
  - --config-path
  - /run/zurelay/bootstrap.json
  - --concurrency
  - {{ include "zurelay.concurrency" . | quote }}
  # A listener that is drained or replaced keeps its streams for longer than any request may take: timeouts.total is 570 s.
  - --drain-time-s
  - {{ max (int .Values.drainSeconds) (include "zurelay.totalSeconds" . | int) | add 60 | quote }}
  - --drain-strategy
  - immediate
  - --disable-hot-restart
  - --log-level
  - {{ .Values.envoy.logLevel | quote }}
  {{- with .Values.envoy.extraArgs }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
ports:
  - {name: {{ include "zurelay.portName" . }}, containerPort: {{ .Values.listen.port }}, protocol: TCP}
  - {name: status, containerPort: {{ .Values.status.port }}, protocol: TCP}
# It starts when every provider's name is resolved or given up, 6 s at most.
startupProbe:
  httpGet: {path: /healthz, port: status}
  periodSeconds: 1
  failureThreshold: 60
livenessProbe:
  httpGet: {path: /healthz, port: status}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 3
# The sidecar's word by way of Envoy: ready where both serve and agree about Envoy's configuration.
readinessProbe:
  httpGet: {path: /readyz, port: status}
  periodSeconds: 5
  timeoutSeconds: 5
  failureThreshold: 2
lifecycle:
  # SIGTERM would cut every stream. The sidecar answers when none is open any more, or drainSeconds are over.
  preStop:
    httpGet: {path: /drain, port: {{ .Values.status.sidecarPort }}}
{{- with .Values.envoy.extraEnv }}
env:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.envoy.extraEnvFrom }}
envFrom:
  {{- toYaml . | nindent 2 }}
{{- end }}
volumeMounts:
  - {name: run, mountPath: /run/zurelay}
  {{- range $name, $keys := include "zurelay.credentials" . | fromJson }}
  - {name: {{ include "zurelay.credentialVolume" $name }}, mountPath: /etc/zurelay/credentials/{{ $name }}, readOnly: true}
  {{- end }}
  {{- if .Values.listen.tls.existingSecret.name }}
  - {name: tls, mountPath: /etc/zurelay/tls, readOnly: true}
  {{- end }}
  {{- with .Values.envoy.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with .Values.envoy.resources }}
resources:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.envoy.securityContext }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}
