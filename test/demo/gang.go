// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/celset/celset/internal/draw"
	"github.com/celset/celset/internal/topology"
	"github.com/celset/celset/test/controlplane"
)

// The hosts form a torus of width x width. The job wants a block of blockWidth x blockWidth hosts.
const width, blockWidth = 8, 4

// job selects the pods of the job.
var job = client.MatchingLabels{"job": "train-torus"}

// gang shows a job whose pods get a block of hosts, and the effects of a failed host.
func (d *demo) gang(ctx context.Context) error {
	d.say("7. A job of 16 pods, on 64 hosts that are wired as a torus of 8x8. The pods are a PodGroup, which is placed")
	d.say("   whole or not at all, and this one wants a block of 4x4 hosts (gangs/torus-4x4.yaml). Other pods have half")
	d.say("   of the hosts. Only one free block is left, around the edges:\n")
	if err := d.hosts(ctx); err != nil {
		return err
	}
	start := time.Now()
	if err := d.apply(ctx, "gangs/torus-4x4.yaml"); err != nil {
		return err
	}
	pods, err := d.running(ctx, blockWidth*blockWidth, job)
	if err != nil {
		return err
	}
	took := time.Since(start)
	if err := d.drawHosts(ctx); err != nil {
		return err
	}
	d.say("   The 16 pods run on a block of 4x4 hosts. It took %.1f s.\n", took.Seconds())
	return d.hostFails(ctx, &pods[len(pods)-1])
}

// hostFails makes the host of a job's pod unschedulable and deletes the pod. It shows that the new pod waits, and makes the
// host schedulable again.
func (d *demo) hostFails(ctx context.Context, pod *corev1.Pod) error {
	host := pod.Spec.NodeName
	d.say("8. The host %s fails, and the job makes another pod. The pod would fit on any of the other free hosts, but", host)
	d.say("   only the lost one completes the block. So the pod waits, and its condition names this host:\n")
	if err := d.cordon(ctx, host, true); err != nil {
		return err
	}
	if err := d.client.Delete(ctx, pod, client.GracePeriodSeconds(0)); err != nil {
		return err
	}
	if err := d.showWaiting(ctx, "train-torus", "can't take a pod: "+host); err != nil {
		return err
	}
	if err := d.cordon(ctx, host, false); err != nil {
		return err
	}
	if _, err := d.running(ctx, blockWidth*blockWidth, job); err != nil {
		return err
	}
	d.say("   The host is back, the new pod runs on it, and the 16 hosts are a block again.\n")
	return nil
}

// hosts creates the nodes of the torus, and pods of other users on about half of the nodes.
func (d *demo) hosts(ctx context.Context) error {
	names, err := controlplane.CreateNodes(ctx, d.kube, width*width, controlplane.NodeOptions{
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
		other.Namespace, other.Name, other.Spec.NodeName = namespace, "other-"+name, name
		other.Spec.Containers = []corev1.Container{{Name: "other", Image: "registry.example.com/other", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("40")},
		}}}
		if err := d.create(ctx, other); err != nil {
			return err
		}
	}
	return nil
}

func (d *demo) cordon(ctx context.Context, name string, cordoned bool) error {
	node := &corev1.Node{}
	node.Name = name
	patch := fmt.Sprintf(`{"spec":{"unschedulable":%t}}`, cordoned)
	return d.client.Patch(ctx, node, client.RawPatch(types.MergePatchType, []byte(patch)))
}

// drawHosts draws the torus with the hosts of the job's pods and of other pods. It draws each host like a device.
func (d *demo) drawHosts(ctx context.Context) error {
	torus, err := topology.NewTorus(topology.Family{Driver: "tpu.example.com", Prefix: "tpu"}, width, width)
	if err != nil {
		return err
	}
	pods, err := d.pods(ctx)
	if err != nil {
		return err
	}
	marks := map[string]draw.Mark{}
	for i := range pods {
		switch host := pods[i].Spec.NodeName; {
		case pods[i].Labels["job"] == job["job"]:
			marks[host] = draw.Mark{State: draw.Chosen}
		case strings.HasPrefix(host, "tpu-"):
			marks[host] = draw.Mark{State: draw.Taken}
		}
	}
	return d.picture("", torus, marks)
}
