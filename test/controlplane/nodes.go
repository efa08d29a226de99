// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"maps"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	nodeutil "k8s.io/component-helpers/node/util"
)

const (
	nodePollPeriod = 100 * time.Millisecond

	// concurrentNodes is the maximum number of concurrent requests while nodes are created.
	concurrentNodes = 16
)

// NodeOptions describe the nodes that CreateNodes creates.
type NodeOptions struct {
	// Prefix begins the names of the nodes, which end in "-0", "-1" and so on. Empty means "node".
	Prefix string
	// Labels are set on all nodes, in addition to kubernetes.io/hostname. LabelsOf, if not nil, returns more labels for the
	// i-th node.
	Labels   map[string]string
	LabelsOf func(i int) map[string]string
	// Capacity is the capacity of each node; all of it is allocatable. If cpu, memory or pods are missing, they come from
	// [DefaultNodeCapacity].
	Capacity corev1.ResourceList
	// Taints of the nodes.
	Taints []corev1.Taint
	// Static nodes are Ready from the start, and stay Ready without kwok. Pods on them never run.
	Static bool
}

// DefaultNodeCapacity is enough for any test: 64 CPUs, 512 GiB of memory and 110 pods.
func DefaultNodeCapacity() corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("64"),
		corev1.ResourceMemory: resource.MustParse("512Gi"),
		corev1.ResourcePods:   resource.MustParse("110"),
	}
}

// CreateNodes creates n nodes, waits until they are Ready, and returns their names in the order of their numbers.
func CreateNodes(ctx context.Context, client kubernetes.Interface, n int, options NodeOptions) ([]string, error) {
	names := make([]string, n)
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(concurrentNodes)
	for i := range n {
		node := options.node(i)
		names[i] = node.Name
		group.Go(func() error {
			_, err := client.CoreV1().Nodes().Create(groupCtx, node, metav1.CreateOptions{})
			if err != nil {
				return fmt.Errorf("create node %s: %w", node.Name, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return names, waitNodesReady(ctx, client, names)
}

// node returns the object for the i-th node.
func (o NodeOptions) node(i int) *corev1.Node {
	prefix := o.Prefix
	if prefix == "" {
		prefix = "node"
	}
	name := fmt.Sprintf("%s-%d", prefix, i)
	capacity := DefaultNodeCapacity()
	maps.Copy(capacity, o.Capacity)
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
		Spec:       corev1.NodeSpec{Taints: o.Taints},
		Status:     corev1.NodeStatus{Capacity: capacity, Allocatable: capacity.DeepCopy()},
	}
	maps.Copy(node.Labels, o.Labels)
	if o.LabelsOf != nil {
		maps.Copy(node.Labels, o.LabelsOf(i))
	}
	if o.Static {
		node.Status.Conditions = []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "Static", Message: "no kubelet",
			LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now(),
		}}
	} else {
		node.Annotations = map[string]string{KwokNodeAnnotation: KwokNodeValue}
	}
	return node
}

// waitNodesReady waits until the nodes are Ready. It lists all nodes instead of getting each, because that is less work with
// hundreds of nodes.
func waitNodesReady(ctx context.Context, client kubernetes.Interface, names []string) error {
	missing := map[string]bool{}
	err := wait.PollUntilContextCancel(ctx, nodePollPeriod, true, func(ctx context.Context) (bool, error) {
		nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		for _, name := range names {
			missing[name] = true
		}
		for i := range nodes.Items {
			if isReady(&nodes.Items[i]) {
				delete(missing, nodes.Items[i].Name)
			}
		}
		return len(missing) == 0, nil
	})
	if err != nil {
		return fmt.Errorf("wait until %d nodes are ready: %d are not, is kwok running?: %w", len(names), len(missing), err)
	}
	return nil
}

func isReady(node *corev1.Node) bool {
	_, ready := nodeutil.GetNodeCondition(&node.Status, corev1.NodeReady)
	return ready != nil && ready.Status == corev1.ConditionTrue
}
