{{/* The image of a program: (list . "celset-scheduler"). */}}
{{- define "celset.image" -}}
{{- $image := (index . 0).Values.image -}}
{{- $registry := required "image.registry: this chart is none of a release, and names no registry; set image.registry to the one that has your images, such as registry.example.com/celset" $image.registry -}}
{{- trimSuffix "/" $registry }}/{{ index . 1 }}:{{ $image.tag }}
{{- if eq $image.tag (index . 0).Chart.AppVersion }}
{{- with index ($image.digests | default dict) (index . 1) }}@{{ . }}{{ end }}
{{- end }}
{{- end }}

{{/* Labels of what belongs to a program. */}}
{{- define "celset.labels" -}}
app.kubernetes.io/name: {{ . }}
app.kubernetes.io/part-of: celset
{{- end }}

{{/* Keeps replicas of a program apart. */}}
{{- define "celset.apart" -}}
topologyKey: kubernetes.io/hostname
labelSelector:
  matchLabels:
    app.kubernetes.io/name: {{ . }}
{{- end }}

{{/* The configuration of the scheduler. */}}
{{- define "celset.schedulerConfig" -}}
{{- with .Values.scheduler -}}
{{- if .config }}{{ .config }}{{ else }}{{ $.Files.Get (printf "files/%s-scheduler.yaml" .mode) }}{{ end -}}
{{- end -}}
{{- end }}

{{/* A PodDisruptionBudget: (list "celset-scheduler" "kube-system"). */}}
{{- define "celset.poddisruptionbudget" -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ index . 0 }}
  namespace: {{ index . 1 }}
  labels: {{- include "celset.labels" (index . 0) | nindent 4 }}
spec:
  maxUnavailable: 1
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      app.kubernetes.io/name: {{ index . 0 }}
{{- end }}

{{/* "true" unless somebody else has made the namespace celset-system, such as for a certificate or a
pull secret: helm would refuse to take it over. Without a cluster, as in helm template, nobody has. */}}
{{- define "celset.makesNamespace" -}}
{{- $namespace := lookup "v1" "Namespace" "" "celset-system" -}}
{{- $made := dig "metadata" "annotations" "meta.helm.sh/release-name" "" ($namespace | default dict) -}}
{{- $in := dig "metadata" "annotations" "meta.helm.sh/release-namespace" "" ($namespace | default dict) -}}
{{- or (not $namespace) (and (eq $made .Release.Name) (eq $in .Release.Namespace)) -}}
{{- end }}

{{/* What pods and containers may not do. */}}
{{- define "celset.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end }}
{{- define "celset.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}
