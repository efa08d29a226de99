// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/internal/draw"
	"github.com/celset/celset/internal/testing/wiring"
	"github.com/celset/celset/internal/topology"
	"github.com/celset/celset/test/controlplane"
)

const (
	// width is that of the torus of hosts, in which a job wants a block of blockWidth.
	width, blockWidth = 8, 4
	jobSelector       = "job=train-torus"
)

// gang is a job on a block of hosts of a torus, which loses a host.
func (d *demo) gang(ctx context.Context) error {
	d.say("7. A job of 16 pods, on 64 hosts that are wired as a torus of 8x8. The pods are a PodGroup, which is placed")
	d.say("   whole or not at all, and this one wants a block of 4x4 hosts (gangs/torus-4x4.yaml). Other pods have half")
	d.say("   of the hosts. Only one free block is left, around the edges:\n")
	torus, err := topology.NewTorus(topology.Family{Driver: "tpu.example.com", Prefix: "tpu"}, width, width)
	if err != nil {
		return err
	}
	if err := d.hosts(ctx, torus); err != nil {
		return err
	}
	start := time.Now()
	if err := d.apply(ctx, "gangs/torus-4x4.yaml", nil); err != nil {
		return err
	}
	pods, err := d.runsOnBlock(ctx, torus)
	if err != nil {
		return err
	}
	if err := d.drawHosts(ctx, torus); err != nil {
		return err
	}
	d.say("   The 16 pods run on a block of 4x4 hosts, checked. It took %s.\n", since(start))

	lost := pods[len(pods)-1]
	d.say("8. The host %s fails, and the job makes another pod. The pod would fit on any of the other free hosts, but", lost.Spec.NodeName)
	d.say("   only the lost one completes the block. So the pod waits, and says for what:\n")
	if err := d.cordon(ctx, lost.Spec.NodeName, true); err != nil {
		return err
	}
	if err := d.client.CoreV1().Pods(namespace).Delete(ctx, lost.Name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}); err != nil {
		return err
	}
	why, err := d.waitsForHost(ctx, lost.Spec.NodeName)
	if err != nil {
		return err
	}
	d.say("%s\n", indented(why))
	if err := d.cordon(ctx, lost.Spec.NodeName, false); err != nil {
		return err
	}
	if _, err = d.runsOnBlock(ctx, torus); err != nil {
		return err
	}
	d.say("   The host is back, the new pod runs on it, and the 16 hosts are a block again.\n")
	return nil
}

// hosts makes a node of each device of the torus, and has other pods on half of them.
func (d *demo) hosts(ctx context.Context, torus topology.Topology) error {
	names, err := controlplane.CreateNodes(ctx, d.client, len(torus.Devices), controlplane.NodeOptions{
		Prefix: "tpu", Labels: map[string]string{"example.com/torus": "a"}, LabelsOf: func(i int) map[string]string {
			return map[string]string{"example.com/x": strconv.Itoa(i / width), "example.com/y": strconv.Itoa(i % width)}
		},
	})
	if err != nil {
		return err
	}
	isEdge := func(i int) bool { return i < blockWidth/2 || i >= width-blockWidth/2 }
	for i, name := range names {
		x, y := i/width, i%width
		if isEdge(x) && isEdge(y) || (x+y)%3 == 0 {
			continue
		}
		other := &corev1.Pod{}
		other.Name, other.Spec.NodeName = "other-"+name, name
		other.Spec.Containers = []corev1.Container{{Name: "other", Image: "registry.example.com/other", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("40")},
		}}}
		if _, err := d.client.CoreV1().Pods(namespace).Create(ctx, other, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

func (d *demo) cordon(ctx context.Context, node string, cordoned bool) error {
	patch := fmt.Sprintf(`{"spec":{"unschedulable":%t}}`, cordoned)
	_, err := d.client.CoreV1().Nodes().Patch(ctx, node, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	return err
}

// runsOnBlock waits until the job's pods run, and checks where they are.
func (d *demo) runsOnBlock(ctx context.Context, torus topology.Topology) (pods []corev1.Pod, err error) {
	var list *corev1.PodList
	err = wait.PollUntilContextTimeout(ctx, pollPeriod, patience, true, func(ctx context.Context) (bool, error) {
		if list, err = d.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: jobSelector}); err != nil {
			return false, err
		}
		running := 0
		for i := range list.Items {
			if list.Items[i].Status.Phase == corev1.PodRunning {
				running++
			}
		}
		return running == blockWidth*blockWidth && running == len(list.Items), nil
	})
	if err != nil {
		why := "it has no pods"
		if list != nil && len(list.Items) > 0 {
			why = whyUnscheduled(&list.Items[0])
		}
		return nil, fmt.Errorf("the pods of the job don't run: %w (%s)", err, why)
	}
	var hosts []string
	for i := range list.Items {
		hosts = append(hosts, list.Items[i].Spec.NodeName)
	}
	if !wiring.IsBlock(torus, hosts, blockWidth, blockWidth) {
		return nil, fmt.Errorf("the job runs on %s: that is no block of %dx%d", strings.Join(hosts, ", "), blockWidth, blockWidth)
	}
	return list.Items, nil
}

// drawHosts shows which hosts the pods of the job have, and which others.
func (d *demo) drawHosts(ctx context.Context, torus topology.Topology) error {
	pods, err := d.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	marks := map[string]draw.Mark{}
	for i := range pods.Items {
		switch on := pods.Items[i].Spec.NodeName; {
		case pods.Items[i].Labels["job"] == "train-torus":
			marks[on] = draw.Mark{State: draw.Chosen}
		case strings.HasPrefix(on, "tpu-"):
			marks[on] = draw.Mark{State: draw.Taken}
		}
	}
	var picture bytes.Buffer
	if err := draw.Text(&picture, torus, marks, d.drawOptions()...); err != nil {
		return err
	}
	d.say("   %s\n", strings.ReplaceAll(strings.TrimRight(picture.String(), "\n"), "\n", "\n   "))
	return nil
}

// waitsForHost is what the condition of the new pod says once the scheduler has looked for a host.
func (d *demo) waitsForHost(ctx context.Context, host string) (why string, err error) {
	err = wait.PollUntilContextTimeout(ctx, pollPeriod, patience, true, func(ctx context.Context) (bool, error) {
		pods, err := d.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: jobSelector, FieldSelector: "spec.nodeName="})
		if err != nil {
			return false, err
		}
		for i := range pods.Items {
			why = whyUnscheduled(&pods.Items[i])
		}
		_, why, _ = strings.Cut(why, ": ")
		return strings.Contains(why, "not "+host), nil
	})
	if err != nil {
		return "", fmt.Errorf("no condition names the host %s: %w (last: %q)", host, err, why)
	}
	return why, nil
}
