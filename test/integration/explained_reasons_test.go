// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/test/internal/env"
)

// An explainedKind makes pods of one kind: pods that run, or pods that wait for the same reason.
type explainedKind struct {
	name string
	make func(*testing.T) explained
}

func uid(name string) types.UID { return types.UID(name) }

// kinds returns all kinds, grouped by the cause: devices, nodes, claims, and the pod itself.
func (l *explainLab) kinds() []explainedKind {
	with := func(reason string, change func(*corev1.Pod)) func(*testing.T) explained {
		return func(t *testing.T) explained {
			pod := l.fitting(t)
			change(pod)
			return explained{Pod: pod, reason: reason}
		}
	}
	resources := func(list corev1.ResourceList) func(*corev1.Pod) {
		return func(pod *corev1.Pod) { pod.Spec.Containers[0].Resources.Requests = list }
	}
	claim := func(reason string, parts func(class string) []env.Part) func(*testing.T) explained {
		return func(t *testing.T) explained {
			return explained{Pod: l.podWith(t, parts(l.ring(t, open, open2))...), reason: reason}
		}
	}
	untold := func(make func(*testing.T) explained) func(*testing.T) explained {
		return func(t *testing.T) explained { e := make(t); e.ignored = true; return e }
	}
	kinds := []explainedKind{
		{"fits", with("", func(*corev1.Pod) {})},
		{"too many devices", claim("4 of 5 requested", func(class string) []env.Part { return l.parts(class, ringSize+1) })},
		{"no set", claim("no set", func(class string) []env.Part {
			return []env.Part{env.Request("r", class, 2), env.Constrained("three", "size(devices) == 3")}
		})},
		{"undefined constraint", claim("celset.dev/undefined", func(class string) []env.Part { return []env.Part{env.Request("r", class, 1), env.Refer("undefined")} })},
		{"expression that does not compile", claim("undeclared reference", func(class string) []env.Part {
			return []env.Part{env.Request("r", class, 1), env.Constrained("bad", "nothing.size() > 1")}
		})},
		{"class missing", func(t *testing.T) explained {
			class := l.ring(t, open)
			return explained{Pod: l.podWith(t, l.parts(class+"x", 1)...), reason: fmt.Sprintf("device class %sx does not exist; did you mean %q?", class, class)}
		}},
		{"all devices", claim("", func(class string) []env.Part { return []env.Part{env.RequestAll("r", class)} })},
		{"alternatives", claim("", func(class string) []env.Part {
			return []env.Part{firstAvailable("r", alternative("large", class, ringSize+1), alternative("small", class, 2))}
		})},
		{"alternatives that are all too large", claim("no:", func(class string) []env.Part {
			return []env.Part{firstAvailable("r", alternative("large", class, ringSize+2), alternative("small", class, ringSize+1))}
		})},
		{"distinct values", claim("no set satisfies distinctAttribute", func(class string) []env.Part {
			return []env.Part{env.Request("r", class, 2), env.DistinctAttribute(class + "/none"), env.Constrained("any", "true")}
		})},
		{"equal values", claim("no set satisfies matchAttribute", func(class string) []env.Part {
			return []env.Part{env.Request("r", class, 2), env.Constrained("any", "true"), env.MatchAttribute(class + "/index")}
		})},
		{"preference", claim("", func(class string) []env.Part {
			return []env.Part{env.Request("r", class, 2), prefer("first", "-devices.map(d, d.attributes['"+class+"'].index).max()")}
		})},
		{"default of a class", func(t *testing.T) explained {
			class := l.ring(t, open, open2)
			definition := env.Parameters(map[string]string{
				"apiVersion": "celset.dev/v1alpha1", "kind": "CELDeviceConstraint", "name": "three", "expression": "size(devices) == 3",
			})
			definition.Opaque.Parameters.Raw = bytes.Replace(definition.Opaque.Parameters.Raw, []byte("{"), []byte(`{"enforcement":"Always",`), 1)
			l.addToClass(t, class, definition)
			count := int64(2 + l.IntN(2))
			return explained{Pod: l.podWith(t, env.Request("r", class, count)), reason: map[int64]string{2: "no set of 2 free devices", 3: ""}[count]}
		}},
		{"devices in use", func(t *testing.T) explained {
			class := l.ring(t, open)
			l.CreateClaim(t, l.name()+"-holder", env.Request("r", class, ringSize-1))
			l.CreatePodAsIs(t, l.here(env.Pod(l.name()+"-holder", env.CelsetProfile, l.name()+"-holder")))
			l.EventuallyPod(t, l.name()+"-holder", "bound", isBound)
			count := int64(1 + l.IntN(2))
			return explained{Pod: l.podWith(t, l.parts(class, count)...), reason: map[int64]string{1: "", 2: "1 of 2 requested"}[count]}
		}},
		{"admin access to devices in use", func(t *testing.T) explained {
			class := l.ring(t, open)
			l.CreateClaim(t, l.name()+"-holder", env.RequestAll("r", class))
			l.CreatePodAsIs(t, l.here(env.Pod(l.name()+"-holder", env.CelsetProfile, l.name()+"-holder")))
			l.EventuallyPod(t, l.name()+"-holder", "bound", isBound)
			return explained{Pod: l.podWith(t, env.Request("r", class, 2), env.WithAdminAccess)}
		}},

		{"node affinity", with("", func(pod *corev1.Pod) {
			pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: onlyNode(l.Nodes[open2])}}
		})},
		{"cpu of an init container", with("", func(pod *corev1.Pod) {
			pod.Spec.InitContainers = []corev1.Container{sidecar(requests("cpu", "2"))}
			pod.Spec.InitContainers[0].RestartPolicy = nil
			pod.Spec.Containers[0].Resources.Requests = requests("cpu", "10m")
		})},
		{"node selector", with("node selector or affinity does not match", func(pod *corev1.Pod) { pod.Spec.NodeSelector["example.com/none"] = "x" })},
		{"taint", func(t *testing.T) explained {
			return explained{Pod: l.podWith(t, l.parts(l.ring(t, tainted), 1)...), reason: "does not tolerate the taint " + taintKey}
		}},
		{"toleration", func(t *testing.T) explained {
			pod := l.podWith(t, l.parts(l.ring(t, tainted), 1)...)
			pod.Spec.Tolerations = []corev1.Toleration{{Key: taintKey, Operator: corev1.TolerationOpExists}}
			return explained{Pod: pod}
		}},
		{"cordoned", func(t *testing.T) explained {
			return explained{Pod: l.podWith(t, l.parts(l.ring(t, cordoned), 1)...), reason: "node.kubernetes.io/unschedulable"}
		}},
		{"cpu that fits", with("", resources(requests("cpu", "500m", "memory", "64Mi")))},
		{"cpu", with("Insufficient cpu", resources(requests("cpu", "64001m")))},
		{"memory", with("Insufficient memory", resources(requests("memory", "513Gi")))},
		{"cpu of a sidecar", with("Insufficient cpu", func(pod *corev1.Pod) {
			pod.Spec.InitContainers = []corev1.Container{sidecar(requests("cpu", "40"))}
			pod.Spec.Containers[0].Resources.Requests = requests("cpu", "25")
		})},
		{"extended resource of nobody", with("Insufficient example.com/nothing", func(pod *corev1.Pod) {
			list := requests("example.com/nothing", "1")
			pod.Spec.Containers[0].Resources.Requests, pod.Spec.Containers[0].Resources.Limits = list, list
		})},
		{"host port", l.hostPort},
		{"extended resource", l.extended(1, "")},
		{"too much of an extended resource", l.extended(ringSize+1, "request container-0-request-0")},
		{"scheduling gate", untold(with("spec.schedulingGates", func(pod *corev1.Pod) {
			pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/gate"}}
		}))},
		{"unknown scheduler", untold(func(t *testing.T) explained {
			pod := l.podWith(t, env.Request("r", l.ring(t, open), 1), env.Constrained("any", "true"))
			pod.Spec.SchedulerName = env.CelsetProfile + "r"
			return explained{Pod: pod, reason: `did you mean "` + env.CelsetProfile + `"?`}
		})},
		{"profile that serves no constraints", func(t *testing.T) explained {
			pod := l.podWith(t, env.Request("r", l.ring(t, open), 1), env.Constrained("any", "true"))
			pod.Spec.SchedulerName = env.StockProfile
			return explained{Pod: pod, reason: `profile "` + env.StockProfile + `" has allocator: Upstream`}
		}},

		{"claim missing", func(*testing.T) explained {
			return explained{Pod: l.here(env.Pod(l.name(), env.CelsetProfile, l.name()+"-none")), reason: "there is no ResourceClaim"}
		}},
		{"template missing", func(*testing.T) explained {
			return explained{Pod: l.here(env.PodFrom(l.name(), env.CelsetProfile, l.name()+"-none")), reason: "there is no ResourceClaimTemplate"}
		}},
		{"refused template", func(t *testing.T) explained {
			l.template(t, map[string]string{refusedLabel: "yes"}, l.parts(l.ring(t, open), 1)...)
			return explained{Pod: l.here(env.PodFrom(l.name(), env.CelsetProfile, l.name())), reason: "claims with this label are refused"}
		}},
		{"claim that is being deleted", l.deletedClaim},
		{"claim of another pod", l.foreignClaim},
		{"shared claim", l.sharedClaim},
		{"shared claim on another node", l.sharedElsewhere},
		{"claim with all consumers", l.fullClaim},
		{"devices that were not attached", l.unattached},
	}
	return append(kinds, l.deviceKinds()...)
}

// deletedClaim makes a pod whose claim is being deleted. A finalizer keeps the claim.
func (l *explainLab) deletedClaim(t *testing.T) explained {
	claims := client().ResourceV1().ResourceClaims(l.Namespace)
	claim := env.Claim(l.name(), l.parts(l.ring(t, open), 1)...)
	claim.Finalizers = []string{"example.com/held"}
	_, err := claims.Create(t.Context(), claim, metav1.CreateOptions{})
	require.NoError(t, err)
	require.NoError(t, claims.Delete(t.Context(), claim.Name, metav1.DeleteOptions{}))
	t.Cleanup(func() {
		_, _ = claims.Patch(t.Context(), claim.Name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	})
	return explained{Pod: l.here(env.Pod(l.name(), env.CelsetProfile, claim.Name)), reason: "is being deleted"}
}

// foreignClaim makes a pod whose status names a claim that was created for another pod.
func (l *explainLab) foreignClaim(t *testing.T) explained {
	l.template(t, nil, l.parts(l.ring(t, open), 1)...)
	pod := l.here(env.PodFrom(l.name(), env.CelsetProfile, l.name()))
	claim := env.Claim(l.name()+"-foreign", env.Request("r", "any", 1))
	claim.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: l.Nodes[0], UID: l.nodeUID(t), Controller: ptr.To(true)}}
	_, err := client().ResourceV1().ResourceClaims(l.Namespace).Create(t.Context(), claim, metav1.CreateOptions{})
	require.NoError(t, err)
	return explained{Pod: pod, reason: "was not created for", created: func(*corev1.Pod) {
		l.EventuallyPod(t, pod.Name, "given a claim", func(_ context.Context, pod *corev1.Pod) (bool, error) {
			return len(pod.Status.ResourceClaimStatuses) > 0, nil
		})
		require.NoError(t, retry.RetryOnConflict(retry.DefaultRetry, func() error {
			now := l.Pod(t, pod.Name)
			now.Status.ResourceClaimStatuses[0].ResourceClaimName = ptr.To(claim.Name)
			_, err := client().CoreV1().Pods(l.Namespace).UpdateStatus(t.Context(), now, metav1.UpdateOptions{})
			return err
		}))
	}}
}

func (l *explainLab) nodeUID(t *testing.T) types.UID {
	node, err := client().CoreV1().Nodes().Get(t.Context(), l.Nodes[0], metav1.GetOptions{})
	require.NoError(t, err)
	return node.UID
}

// hostPort makes a pod for one node where another pod uses the requested host port.
func (l *explainLab) hostPort(t *testing.T) explained {
	pod := l.on(l.fitting(t), open)
	pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: int32(20000 + l.number)}}
	holder := l.on(env.Pod(l.name()+"-holder", env.CelsetProfile), open)
	holder.Spec.Containers[0].Ports = pod.Spec.Containers[0].Ports
	l.CreatePodAsIs(t, holder)
	l.EventuallyPod(t, holder.Name, "bound", isBound)
	return explained{Pod: pod, reason: "free ports"}
}

func isBound(_ context.Context, pod *corev1.Pod) (bool, error) { return pod.Spec.NodeName != "", nil }

// extended returns a function that makes a pod that requests count devices as an extended resource. reason is the expected
// reason.
func (l *explainLab) extended(count int, reason string) func(*testing.T) explained {
	return func(t *testing.T) explained {
		driver := l.ring(t, open, open2)
		name := fmt.Sprintf("example.com/m%d-%s", l.number, l.Namespace)
		spec := env.ClassOf(driver)
		spec.ExtendedResourceName = &name
		l.CreateClassWithSpec(t, driver+"-extended", spec)
		pod := l.here(env.Pod(l.name(), allProfile))
		list := requests(name, fmt.Sprint(count))
		pod.Spec.Containers[0].Resources.Requests, pod.Spec.Containers[0].Resources.Limits = list, list
		return explained{Pod: pod, reason: reason}
	}
}

// shared returns a pod for a claim that a pod on one node already uses.
func (l *explainLab) shared(t *testing.T) *corev1.Pod {
	l.CreateClaim(t, l.name(), l.parts(l.ring(t, open), 1)...)
	l.CreatePodAsIs(t, l.here(env.Pod(l.name()+"-first", env.CelsetProfile, l.name())))
	l.EventuallyPod(t, l.name()+"-first", "bound", isBound)
	return l.here(env.Pod(l.name(), env.CelsetProfile, l.name()))
}

func (l *explainLab) sharedClaim(t *testing.T) explained { return explained{Pod: l.shared(t)} }

func (l *explainLab) sharedElsewhere(t *testing.T) explained {
	return explained{Pod: l.on(l.shared(t), open2), reason: "has devices that are not available on the node"}
}

// fullClaim makes a pod for a claim that already has the maximum number of consumers.
func (l *explainLab) fullClaim(t *testing.T) explained {
	driver := l.ring(t, open)
	l.allocate(t, l.CreateClaim(t, l.name(), l.parts(driver, 1)...), driver, l.Nodes[open], fmt.Sprintf("m%d-0", l.number))
	l.changeStatus(t, l.name(), func(claim *resourceapi.ResourceClaim) {
		claim.Status.ReservedFor = consumers(resourceapi.ResourceClaimReservedForMaxSize)
	})
	return explained{Pod: l.here(env.Pod(l.name(), env.CelsetProfile, l.name())), reason: "has 256 consumers"}
}

// unattached makes a pod for a claim whose devices could not be attached. The claim stays allocated, because it has another
// consumer.
func (l *explainLab) unattached(t *testing.T) explained {
	driver := l.ring(t, open)
	claim := l.CreateClaim(t, l.name(), l.parts(driver, 1)...)
	claim.Finalizers = append(claim.Finalizers, resourceapi.Finalizer)
	claim, err := client().ResourceV1().ResourceClaims(l.Namespace).Update(t.Context(), claim, metav1.UpdateOptions{})
	require.NoError(t, err)
	late, device := l.IntN(2) == 0, fmt.Sprintf("m%d-0", l.number)
	at := time.Now()
	if late {
		at = at.Add(-time.Hour)
	}
	claim.Status.Allocation = &resourceapi.AllocationResult{AllocationTimestamp: ptr.To(metav1.NewTime(at)), NodeSelector: onlyNode(l.Nodes[open])}
	claim.Status.Allocation.Devices.Results = []resourceapi.DeviceRequestAllocationResult{{
		Request: "r", Driver: driver, Pool: l.Nodes[open], Device: device, BindingConditions: []string{attached}, BindingFailureConditions: []string{attachFailed},
	}}
	claim.Status.ReservedFor = consumers(2)
	_, err = client().ResourceV1().ResourceClaims(l.Namespace).UpdateStatus(t.Context(), claim, metav1.UpdateOptions{})
	require.NoError(t, err)
	e := explained{Pod: l.here(env.Pod(l.name(), env.CelsetProfile, l.name())), reason: "within bindingTimeout"}
	if !late {
		e.reason = attachFailed
		l.changeStatus(t, l.name(), func(claim *resourceapi.ResourceClaim) {
			claim.Status.Devices = []resourceapi.AllocatedDeviceStatus{{Driver: driver, Pool: l.Nodes[open], Device: device, Conditions: []metav1.Condition{{
				Type: attachFailed, Status: metav1.ConditionTrue, Reason: "NoSlot", Message: "no slot", LastTransitionTime: metav1.Now(),
			}}}}
		})
	}
	return e
}
