{{/* The sidecar's container. */}}

{{- define "zurelay.sidecarArgs" -}}
- sidecar
- --config
- /etc/zurelay/config/zurelay.yaml
{{- if include "zurelay.isGateway" . }}
- --run-dir
- /run/zurelay
{{- else }}
- --listen
- {{ include "zurelay.address" (list . .Values.sidecarOnly.port) | quote }}
- --egress
- {{ .Values.sidecarOnly.egress | quote }}
{{- end }}
{{- end -}}

{{- define "zurelay.sidecarImage" -}}
image: {{ include "zurelay.image" (list .Values.sidecar.image .Chart.AppVersion) | quote }}
imagePullPolicy: {{ .Values.sidecar.image.pullPolicy }}
{{- end -}}

{{- /* What the sidecar and the container that prepares for it have in common. */ -}}
{{- define "zurelay.sidecarSurroundings" -}}
{{- $isGateway := include "zurelay.isGateway" . -}}
{{- if or $isGateway .Values.sidecar.extraEnv (eq .Values.mode "sidecar-only") }}
env:
  {{- if $isGateway }}
  # Envoy's heap is bounded below what its container may take.
  - name: ZURELAY_ENVOY_MEMORY
    valueFrom: {resourceFieldRef: {containerName: envoy, resource: limits.memory}}
  {{- else }}
  - name: ZURELAY_EGRESS_TOKEN
    valueFrom:
      secretKeyRef:
        {{- with .Values.sidecarOnly.egressToken.existingSecret }}
        name: {{ .name | quote }}
        key: {{ .key | quote }}
        {{- end }}
  {{- end }}
  {{- with .Values.sidecar.extraEnv }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
{{- with .Values.sidecar.extraEnvFrom }}
envFrom:
  {{- toYaml . | nindent 2 }}
{{- end }}
volumeMounts:
  - {name: config, mountPath: /etc/zurelay/config, readOnly: true}
  {{- if .Values.keys.existingSecret.name }}
  - {name: keys, mountPath: /etc/zurelay/keys, readOnly: true}
  {{- end }}
  {{- if .Values.store.redis.existingSecret.name }}
  - {name: redis, mountPath: /etc/zurelay/redis, readOnly: true}
  {{- else }}
  - {name: data, mountPath: /var/lib/zurelay}
  {{- end }}
  {{- if $isGateway }}
  - {name: run, mountPath: /run/zurelay}
  {{- end }}
  {{- with .Values.sidecar.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with .Values.sidecar.resources }}
resources:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.sidecar.securityContext }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "zurelay.sidecar" -}}
name: sidecar
{{ include "zurelay.sidecarImage" . }}
args:
  {{- include "zurelay.sidecarArgs" . | nindent 2 }}
  - --status-listen
  - {{ include "zurelay.address" (list . .Values.status.sidecarPort) | quote }}
  - --drain-seconds
  - {{ .Values.drainSeconds | quote }}
ports:
  - {name: sidecar-status, containerPort: {{ .Values.status.sidecarPort }}, protocol: TCP}
  {{- if not (include "zurelay.isGateway" .) }}
  - {name: grpc, containerPort: {{ .Values.sidecarOnly.port }}, protocol: TCP}
  {{- end }}
# Envoy's files are written when it answers: nothing else is waited for.
startupProbe:
  httpGet: {path: /livez, port: sidecar-status}
  periodSeconds: 1
  failureThreshold: 60
livenessProbe:
  httpGet: {path: /livez, port: sidecar-status}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 3
  # One that is wedged can't drain.
  terminationGracePeriodSeconds: 10
readinessProbe:
  {{- if include "zurelay.isGateway" . }}
  httpGet: {path: /readyz, port: sidecar-status}
  {{- else }}
  grpc: {port: {{ .Values.sidecarOnly.port }}}
  {{- end }}
  periodSeconds: 5
  timeoutSeconds: 5
  failureThreshold: 2
{{- include "zurelay.sidecarSurroundings" . }}
{{- end -}}

{{- /* Where init containers can't keep running: Envoy's files are written before it starts. */ -}}
{{- define "zurelay.prepare" -}}
name: prepare
{{ include "zurelay.sidecarImage" . }}
args:
  {{- include "zurelay.sidecarArgs" . | nindent 2 }}
  - --prepare
{{- include "zurelay.sidecarSurroundings" . }}
{{- end -}}
