// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celset/celset/test/story"
)

// neurons is the story of a machine that exists.
func (d *demo) neurons(ctx context.Context) error {
	d.say("1. A pod wants a 2x2 block of Trainium accelerators, and the EFAs (network interfaces) that belong to them:")
	d.say("   two drivers, two constraints (trn1-2x2.yaml). trn1-0 has enough free accelerators, but no whole block.\n")
	return d.tell(ctx, story.Neurons())
}

// connectedDevices is the first user story of KEP-5254.
func (d *demo) connectedDevices(ctx context.Context) error {
	d.say("2. A pod wants four connected accelerators of a ring. The constraint is defined in the claim")
	d.say("   (ring-4-connected.yaml). The first four free ones of either node are not connected.\n")
	return d.tell(ctx, story.Ring())
}

// grid is the second one.
func (d *demo) grid(ctx context.Context) error {
	d.say("3. A pod wants a 2x2 block of a mesh. The vendor ships the constraint in its DeviceClass; the claim")
	d.say("   only says \"matchAttribute: celset.dev/grid2x2\" (grid-2x2.yaml).\n")
	return d.tell(ctx, story.Grid())
}

// tell applies an example and checks what its pod gets.
func (d *demo) tell(ctx context.Context, told *story.Story) error {
	start := time.Now()
	if err := d.apply(ctx, told.Manifest, nil); err != nil {
		return err
	}
	return d.check(ctx, told, start)
}

// check waits for the pod of a story that began then, and checks what it got.
func (d *demo) check(ctx context.Context, told *story.Story, start time.Time) error {
	running, err := d.waitRunning(ctx, told.Pod)
	if err != nil {
		return err
	}
	took := since(start)
	s, err := d.siteOf(running.Spec.NodeName)
	if err != nil {
		return err
	}
	devices, err := d.devicesOf(ctx, running)
	if err != nil {
		return err
	}
	if err := d.draw(ctx, told.Pod, s); err != nil {
		return err
	}
	sortNaturally(devices)
	if !told.Holds(devices) {
		return fmt.Errorf("pod %s has %s on node %s: not %s", told.Pod, strings.Join(devices, ", "), s.node, told.Wants)
	}
	d.say("   Pod %s runs on %s with %s: %s, checked. It took %s.\n", told.Pod, s.node, strings.Join(devices, ", "), told.Wants, took)
	return nil
}

// sortNaturally sorts names by their numbers: device-9 comes before device-10.
func sortNaturally(names []string) {
	slices.SortFunc(names, func(a, b string) int {
		one, other := strings.TrimRight(a, "0123456789"), strings.TrimRight(b, "0123456789")
		if one != other {
			return strings.Compare(one, other)
		}
		return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
	})
}

// noSuchSet asks once more for what there was one of.
func (d *demo) noSuchSet(ctx context.Context) error {
	d.say("4. Another pod, ring-again, with the claim of 2. Nine accelerators of the two rings are still free, but")
	d.say("   no connected four of them. The pod waits, and its event says why: \"nearest miss\" is the node that lacks")
	d.say("   least, with the condition that fails there, and \"in the way\" are claims that would have to end.\n")
	return d.waits(ctx, "ring-again", nil,
		"constraint ring4: no set of 4 free devices satisfies it",
		"request mla: 3 of 4 devices",
		"nearest miss: node ring-0: 6 of 8 devices for request mla are free, but no set satisfies constraint ring4, line 1, column 1: ",
		"in the way: claim default/other-ring-0 with mla-1, mla-5")
}

// failsClosed gives the claim to the stock plugin.
func (d *demo) failsClosed(ctx context.Context) error {
	d.say("5. Another pod, ring-stock, with the same claim, but for the scheduler profile that Kubernetes has by default.")
	d.say("   It does not know such constraints. So it refuses the claim, and does not hand out just any four devices:\n")
	return d.waits(ctx, "ring-stock", func(manifest []byte) []byte {
		return bytes.ReplaceAll(manifest, []byte("schedulerName: celset-scheduler"), []byte("schedulerName: default-scheduler"))
	}, "cannot allocate all claims")
}

// preempts asks once more, with a priority.
func (d *demo) preempts(ctx context.Context) error {
	const urgent = "ring-urgent"
	d.say("6. Another pod, ring-urgent, with the same claim and a priority. On ring-0 the pod other-ring-0 is in the way.")
	d.say("   It is evicted, and four devices are held for ring-urgent until it has ended (feature gate")
	d.say("   CelsetDevicePreemption). The four that are left go to ring-again, which has waited since 4:\n")
	told := story.Ring()
	manifest := told.Manifest
	told.Pod = urgent
	start := time.Now()
	err := d.apply(ctx, manifest, func(manifest []byte) []byte {
		manifest = bytes.ReplaceAll(manifest, []byte("name: ring\n"), []byte("name: "+urgent+"\n"))
		return bytes.ReplaceAll(manifest, []byte("schedulerName: celset-scheduler\n"),
			[]byte("schedulerName: celset-scheduler\n  priorityClassName: urgent\n  nodeSelector: {kubernetes.io/hostname: ring-0}\n"))
	})
	if err != nil {
		return err
	}
	if err := d.check(ctx, told, start); err != nil {
		return err
	}
	_, err = d.client.CoreV1().Pods(namespace).Get(ctx, "other-ring-0", metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		return fmt.Errorf("pod other-ring-0 is still there (%w)", err)
	}
	return nil
}

// waits applies the ring example as another pod and checks that it gets nothing,
// for the given reasons.
func (d *demo) waits(ctx context.Context, pod string, change func([]byte) []byte, reasons ...string) error {
	err := d.apply(ctx, story.Ring().Manifest, func(manifest []byte) []byte {
		manifest = bytes.ReplaceAll(manifest, []byte("name: ring\n"), []byte("name: "+pod+"\n"))
		if change != nil {
			manifest = change(manifest)
		}
		return manifest
	})
	if err != nil {
		return err
	}
	event, err := d.waitUnschedulable(ctx, pod)
	if err != nil {
		return err
	}
	d.say("%s\n", indented(event))
	for _, reason := range reasons {
		if !strings.Contains(event, reason) {
			return fmt.Errorf("the event of pod %s does not say %q: %s", pod, reason, event)
		}
	}
	return d.hasNothing(ctx, pod)
}
