{{/* What is wrong with the values, all at once, each with its path. The schema has told of unknown keys and types before. */}}

{{- define "zurelay.check" -}}
{{- $parts := list "config" "models" "providers" "callers" "store" "ports" "scaling" "doors" "only" -}}
{{- $found := list -}}
{{- range $parts -}}
{{- range include (printf "zurelay.problems.%s" .) $ | splitList "\n" -}}
{{- if trim . }}{{ $found = append $found (trim .) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- if $found }}{{ fail (printf "these values can't be used:\n  %s" (join "\n  " $found)) }}{{ end -}}
{{- end -}}

{{- define "zurelay.problems.config" -}}
{{- $owned := dict "listen" "listen.port and listen.tls" "status" "status.port" "store" "store.sqlite or store.redis" "workers" "workers" -}}
{{- range $key, $place := $owned }}
{{- if hasKey $.Values.config $key }}
config.{{ $key }}: is the chart's to write; set {{ $place }} of the values
{{- end }}
{{- end }}
{{- if dig "auth" "keys" "" .Values.config }}
config.auth.keys: is the chart's to write; set keys.existingSecret.name
{{- end }}
{{- range $file := list "ca" "cert" "key" }}
{{- if dig "identity" $file "" $.Values.config }}
config.identity.{{ $file }}: is the chart's to write; set listen.tls.existingSecret.name
{{- end }}
{{- end }}
{{- with .Values.config.telemetry }}
{{- if and .otlp (not (regexMatch "^https?://[^/?#]+" (toString .otlp))) }}
config.telemetry.otlp: expected a URL that begins with https:// or http://
{{- end }}
{{- end }}
{{- end -}}

{{- define "zurelay.problems.models" -}}
{{- if not .Values.config.models }}
config.models: no models; at least one is needed
{{- end }}
{{- $names := keys (.Values.config.providers | default dict) }}
{{- range $model, $facts := .Values.config.models }}
{{- $path := printf "config.models.%s.routes" $model }}
{{- if not (and (kindIs "slice" $facts.routes) $facts.routes) }}
{{ $path }}: a model needs at least one: [{provider: NAME, model: NAME}]
{{- else }}
{{- range $number, $route := $facts.routes }}
{{- if not (and (kindIs "map" $route) (has (get $route "provider") $names)) }}
{{ $path }}[{{ $number }}].provider: expected one of config.providers: {{ $names | sortAlpha | join ", " | trunc 200 }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "zurelay.problems.providers" -}}
{{- if not .Values.config.providers }}
config.providers: no providers; at least one is needed
{{- end }}
{{- range $name, $provider := .Values.config.providers }}
{{- $path := printf "config.providers.%s" $name }}
{{- if not (regexMatch "^https?://[^/?#]+" (toString $provider.base_url)) }}
{{ $path }}.base_url: expected a URL that begins with https:// or http://
{{- end }}
{{- if not (kindIs "invalid" $provider.api_key) }}
{{- include "zurelay.problems.credential" (list $ (printf "%s.api_key" $path) $provider.api_key) }}
{{- end }}
{{- end }}
{{- end -}}

{{- /* What stands in place of a credential is never shown: it may be the credential itself. */ -}}
{{- define "zurelay.problems.credential" -}}
{{- $root := index . 0 }}{{ $path := index . 1 }}{{ $secret := index . 2 }}
{{- $right := "{existingSecret: {name: NAME, key: KEY}}" }}
{{- if not (kindIs "map" $secret) }}
{{ $path }}: expected {{ $right }}; keys don't belong in values
{{- else if $secret.existingSecret }}
{{- if not (include "zurelay.isGateway" $root) }}
{{ $path }}: has no use with mode sidecar-only; say {env: NAME} or {file: PATH}, as your Envoy finds it
{{- else if or $secret.env $secret.file }}
{{ $path }}: expected existingSecret alone
{{- else if not (and (kindIs "map" $secret.existingSecret) (get $secret.existingSecret "name") (get $secret.existingSecret "key")) }}
{{ $path }}.existingSecret: the name of the Secret or its key is missing; expected {{ $right }}
{{- else if not (regexMatch "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$" (toString $secret.existingSecret.name)) }}
{{ $path }}.existingSecret.name: can't be a Secret's name, which has small letters, digits, dashes and dots
{{- else if not (regexMatch "^[-._a-zA-Z0-9]+$" (toString $secret.existingSecret.key)) }}
{{ $path }}.existingSecret.key: can't be a key of a Secret, which has letters, digits, dashes, dots and underscores
{{- end }}
{{- else if $secret.env }}
{{- $known := $root.Values.envoy.extraEnvFrom }}
{{- range $root.Values.envoy.extraEnv }}{{ if eq .name (toString $secret.env) }}{{ $known = true }}{{ end }}{{ end }}
{{- if and (include "zurelay.isGateway" $root) (not $known) }}
{{ $path }}.env: this variable isn't in envoy.extraEnv; add it there, or name the Secret: {{ $right }}
{{- end }}
{{- else if not $secret.file }}
{{ $path }}: expected {{ $right }}
{{- end }}
{{- end -}}

{{- define "zurelay.problems.callers" -}}
{{- $require := include "zurelay.require" . }}{{ $identity := include "zurelay.identityMode" . }}
{{- if not (has $require (list "key" "workload" "either" "none")) }}
config.auth.require: expected one of key, workload, either or none
{{- end }}
{{- if not (has $identity (list "mtls" "forwarded" "none")) }}
config.identity.mode: expected one of mtls, forwarded or none
{{- end }}
{{- if and (has $require (list "key" "either")) (not .Values.keys.existingSecret.name) }}
keys.existingSecret.name: missing; config.auth.require {{ $require }} needs the Secret with keys.yaml
{{- end }}
{{- if and (has $require (list "workload" "either")) (eq $identity "none") }}
config.auth.require: {{ $require }} needs config.identity.mode mtls or forwarded, or mesh.istio.enabled
{{- end }}
{{- if and (eq $require "none") (not (dig "auth" "allow_open" false .Values.config)) }}
config.auth.require: none lets anyone who reaches the Service use your accounts; require keys, or say config.auth.allow_open: true
{{- end }}
{{- if and (eq $identity "mtls") (not .Values.listen.tls.existingSecret.name) }}
listen.tls.existingSecret.name: missing; config.identity.mode mtls needs certificate, key and authority
{{- end }}
{{- if .Values.mesh.istio.enabled }}
{{- if ne $identity "forwarded" }}
config.identity.mode: {{ $identity }} doesn't go with mesh.istio, where the mesh's proxy ends TLS; leave config.identity out
{{- end }}
{{- if .Values.listen.tls.existingSecret.name }}
listen.tls.existingSecret.name: doesn't go with mesh.istio, whose proxies speak TLS to each other; leave it out
{{- end }}
{{- if not (or .Values.callers.namespaces .Values.mesh.istio.principals) }}
callers.namespaces: names no one, so that the mesh would let in this namespace alone; name namespaces, or mesh.istio.principals
{{- end }}
{{- end }}
{{- end -}}

{{- define "zurelay.problems.store" -}}
{{- $redis := .Values.store.redis.existingSecret.name }}{{ $claim := .Values.store.sqlite.existingClaim }}
{{- $pods := include "zurelay.mostPods" . | int }}
{{- $count := ternary "autoscaling.maxReplicas" "replicaCount" .Values.autoscaling.enabled }}
{{- if and $redis $claim }}
store: names two stores, sqlite.existingClaim and redis.existingSecret.name; keep one
{{- end }}
{{- if and (gt $pods 1) (not $redis) }}
{{- if include "zurelay.hasLimits" . }}
{{ $count }}: {{ $pods }} pods with limits need a Redis that they share: set store.redis.existingSecret.name (or keys.limits: false, where neither a key nor a policy has limits)
{{- end }}
{{- if $claim }}
{{ $count }}: {{ $pods }} pods can't share the SQLite file in store.sqlite.existingClaim; set store.redis.existingSecret.name
{{- end }}
{{- end }}
{{- end -}}

{{- define "zurelay.problems.ports" -}}
{{- $ports := dict "listen.port" .Values.listen.port "status.port" .Values.status.port "status.sidecarPort" .Values.status.sidecarPort }}
{{- if not (include "zurelay.isGateway" .) }}
{{- $ports = dict "sidecarOnly.port" .Values.sidecarOnly.port "status.sidecarPort" .Values.status.sidecarPort }}
{{- end }}
{{- $taken := dict }}
{{- range $path := keys $ports | sortAlpha }}
{{- $port := get $ports $path | int | toString }}
{{- if hasKey $taken $port }}
{{ $path }}: {{ $port }} is {{ get $taken $port }} too; choose another
{{- end }}
{{- $_ := set $taken $port $path }}
{{- if lt (get $ports $path | int) 1024 }}
{{ $path }}: {{ $port }} needs a privilege that pods don't have; take one from 1024 up (clients see service.port)
{{- end }}
{{- end }}
{{- end -}}

{{- define "zurelay.problems.scaling" -}}
{{- $scaling := .Values.autoscaling }}
{{- if $scaling.enabled }}
{{- if gt (int $scaling.minReplicas) (int $scaling.maxReplicas) }}
autoscaling.minReplicas: {{ $scaling.minReplicas }} is over maxReplicas, {{ $scaling.maxReplicas }}
{{- end }}
{{- range $name := ternary (list "envoy" "sidecar") (list "sidecar") (eq "gateway" .Values.mode) }}
{{- if not (dig "resources" "requests" "cpu" "" (get $.Values $name)) }}
{{ $name }}.resources.requests.cpu: missing; autoscaling measures CPU in percent of it
{{- end }}
{{- end }}
{{- end }}
{{- if and (eq .Values.mode "gateway") (not (dig "limits" "memory" "" .Values.envoy.resources)) }}
envoy.resources.limits.memory: missing; Envoy's heap is bounded at four fifths of it
{{- end }}
{{- if and .Values.podDisruptionBudget.minAvailable .Values.podDisruptionBudget.maxUnavailable }}
podDisruptionBudget: has minAvailable and maxUnavailable; keep one, and set the other to null
{{- end }}
{{- if and (kindIs "invalid" .Values.podDisruptionBudget.minAvailable) (kindIs "invalid" .Values.podDisruptionBudget.maxUnavailable) }}
podDisruptionBudget: has neither minAvailable nor maxUnavailable; set one, or enabled: false
{{- end }}
{{- if and (regexMatch "^0+%?$" (toString .Values.strategy.maxUnavailable)) (regexMatch "^0+%?$" (toString .Values.strategy.maxSurge)) }}
strategy.maxSurge: 0 with maxUnavailable 0 leaves no way to replace a pod
{{- end }}
{{- end -}}

{{- define "zurelay.problems.doors" -}}
{{- if not (regexMatch "^[a-z]([-a-z0-9]*[a-z0-9])?$" (include "zurelay.fullname" .)) }}
fullnameOverride: {{ include "zurelay.fullname" . }} is no name of a Service, which has small letters, digits and dashes, a letter first; set another
{{- end }}
{{- if or (hasPrefix "127." .Values.listen.host) (eq "::1" .Values.listen.host) }}
listen.host: {{ .Values.listen.host }} is reached from inside the pod alone; take 0.0.0.0 or "::"
{{- end }}
{{- if and .Values.service.nodePort (eq .Values.service.type "ClusterIP") }}
service.nodePort: has no use with service.type ClusterIP; set NodePort or LoadBalancer
{{- end }}
{{- range .Values.extraVolumes }}
{{- if has .name (list "config" "keys" "redis" "data" "run" "tls") }}
extraVolumes: {{ .name }} is a volume of the chart's; choose another name
{{- end }}
{{- end }}
{{- if and .Values.ingress.enabled (not .Values.ingress.hosts) }}
ingress.hosts: no host; without one every host of the controller would lead here
{{- end }}
{{- if and .Values.httpRoute.enabled (not .Values.httpRoute.parentRefs) }}
httpRoute.parentRefs: no Gateway; name one: [{name: NAME, namespace: NAMESPACE}]
{{- end }}
{{- range $key := list "app.kubernetes.io/name" "app.kubernetes.io/instance" "app.kubernetes.io/component" }}
{{- range $path := list "podLabels" "commonLabels" }}
{{- if hasKey (get $.Values $path) $key }}
{{ $path }}: {{ $key }} is what the Service finds its pods by; leave it out
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "zurelay.problems.only" -}}
{{- if not (include "zurelay.isGateway" .) }}
{{- $egress := .Values.sidecarOnly.egress }}
{{- if or (not (regexMatch "^([-._a-zA-Z0-9]+|\\[[0-9a-fA-F:.]+\\]):[0-9]{1,5}$" $egress)) (gt (regexFind "[0-9]+$" $egress | atoi) 65535) }}
sidecarOnly.egress: expected HOST:PORT, where your Envoy has its egress listener
{{- end }}
{{- if not .Values.sidecarOnly.egressToken.existingSecret.name }}
sidecarOnly.egressToken.existingSecret.name: missing; all replicas show your Envoy the same token
{{- end }}
{{- range $path := list "ingress" "httpRoute" }}
{{- if (get $.Values $path).enabled }}
{{ $path }}.enabled: has no use with mode sidecar-only; requests come to your Envoy
{{- end }}
{{- end }}
{{- if .Values.mesh.istio.enabled }}
mesh.istio.enabled: has no use with mode sidecar-only; it is your Envoy that speaks to providers
{{- end }}
{{- end }}
{{- end -}}
