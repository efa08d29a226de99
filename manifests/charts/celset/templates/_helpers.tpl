{{/* The image of a program: (list . "celset-scheduler"). */}}
{{- define "celset.image" -}}
{{- $image := (index . 0).Values.image -}}
{{- $registry := required "image.registry: this chart is none of a release, and names no registry; set image.registry to the one that has your images, such as registry.example.com/celset" $image.registry -}}
{{- trimSuffix "/" $registry }}/{{ index . 1 }}:{{ $image.tag }}
{{- if eq $image.tag (index . 0).Chart.AppVersion }}
{{- with index ($image.digests | default dict) (index . 1) }}@{{ . }}{{ end }}
{{- end }}
{{- end }}

{{/* The labels of all objects of a program and of its pods: (list . "scheduler"). */}}
{{- define "celset.labels" -}}
app.kubernetes.io/name: celset-{{ index . 1 }}
app.kubernetes.io/component: {{ index . 1 }}
app.kubernetes.io/part-of: celset
app.kubernetes.io/version: {{ (index . 0).Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ (index . 0).Release.Service }}
{{- end }}

{{/* The objects of a text, with the labels of a program beside their own: (list . "scheduler" "apiVersion: ..."). */}}
{{- define "celset.labeled" -}}
{{- $labels := include "celset.labels" . }}
{{- range splitList "\n---\n" (index . 2) }}
{{- with fromYaml . }}
{{- $_ := set .metadata "labels" (merge (fromYaml $labels) (.metadata.labels | default dict)) }}
---
{{ toYaml . }}
{{- end }}
{{- end }}
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
spec:
  maxUnavailable: 1
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      app.kubernetes.io/name: {{ index . 0 }}
{{- end }}

{{/* The dashboard of a program, where Grafana's sidecar finds it: (list . "scheduler"). */}}
{{- define "celset.dashboard" -}}
{{- $file := eq (index . 1) "scheduler" | ternary "celset.json" (printf "celset-%s.json" (index . 1)) }}
apiVersion: v1
kind: ConfigMap
metadata:
  name: celset-{{ index . 1 }}-dashboard
  namespace: {{ get (dict "scheduler" "kube-system" "topology-driver" "celset-topology-driver") (index . 1) | default "celset-system" }}
  labels:
    grafana_dashboard: "1"
data:
  {{ $file }}: {{ (index . 0).Files.Get (printf "files/dashboards/%s" $file) | toJson }}
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
