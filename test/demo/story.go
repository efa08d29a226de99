// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Run shows claims for devices, preemption, a gang on hosts, and devices that get coordinates from a table, in a cluster.
func Run(ctx context.Context, options Options) error {
	d, err := newDemo(options)
	if err != nil {
		return err
	}
	return acts(ctx, d.setUp, d.sets, d.noSets, d.preemption, d.gang, d.attributes)
}

// sets shows three pods that each get a set of devices.
func (d *demo) sets(ctx context.Context) error {
	d.say("1. A pod wants a 2x2 block of Trainium accelerators, and the EFAs (network interfaces) that belong to them:")
	d.say("   two drivers, two constraints (trn1-2x2.yaml). trn1-0 has enough free accelerators, but no whole block.\n")
	if err := d.show(ctx, "neurons", "trn1-2x2.yaml"); err != nil {
		return err
	}
	d.say("2. A pod wants four connected accelerators of a ring. The constraint is defined in the claim")
	d.say("   (ring-4-connected.yaml). The first four free ones of either node are not connected.\n")
	if err := d.show(ctx, "ring", "ring-4-connected.yaml"); err != nil {
		return err
	}
	d.say("3. A pod wants a 2x2 block of a mesh. The vendor ships the constraint in its DeviceClass; the claim")
	d.say("   only says \"matchAttribute: celset.dev/grid2x2\" (grid-2x2.yaml).\n")
	return d.show(ctx, "grid", "grid-2x2.yaml")
}

// noSets shows two pods that get no devices, with the scheduler's reasons.
func (d *demo) noSets(ctx context.Context) error {
	d.say("4. Another pod, ring-again, with the claim of 2. Nine accelerators of the two rings are still free, but")
	d.say("   no connected four of them. The pod waits, and its condition PodScheduled says why: \"nearest miss\" is the")
	d.say("   node that lacks least, and the condition that fails there. \"In the way\" are claims that would have to end.\n")
	if err := d.apply(ctx, "ring-4-connected.yaml", "name: ring\n", "name: ring-again\n"); err != nil {
		return err
	}
	if err := d.showWaiting(ctx, "ring-again", "no set of 4 free devices satisfies constraint ring4"); err != nil {
		return err
	}
	d.say("5. Another pod, ring-stock, with the same claim, but for the scheduler profile that Kubernetes has by default.")
	d.say("   This profile does not support such constraints. It refuses the claim, and does not allocate just any four")
	d.say("   devices:\n")
	err := d.apply(ctx, "ring-4-connected.yaml", "name: ring\n", "name: ring-stock\n", "celset-scheduler", "default-scheduler")
	if err != nil {
		return err
	}
	return d.showWaiting(ctx, "ring-stock", "cannot allocate all claims")
}

// preemption shows a pod that gets devices because the scheduler evicts a pod of lower priority.
func (d *demo) preemption(ctx context.Context) error {
	d.say("6. Another pod, ring-urgent, with the same claim and a priority. On ring-0 the pod other-ring-0 is in the way.")
	d.say("   It is evicted, and four devices are held for ring-urgent until it has ended (feature gate")
	d.say("   CelsetDevicePreemption). The four that are left go to ring-again, which has waited since 4:\n")
	start := time.Now()
	err := d.apply(ctx, "ring-4-connected.yaml", "name: ring\n", "name: ring-urgent\n", "schedulerName: celset-scheduler\n",
		"schedulerName: celset-scheduler\n  priorityClassName: urgent\n  nodeSelector: {kubernetes.io/hostname: ring-0}\n")
	if err != nil {
		return err
	}
	if _, err := d.running(ctx, 1, named("ring-again")); err != nil {
		return err
	}
	return d.showRunning(ctx, "ring-urgent", start)
}

// show applies an example manifest, waits until its pod runs, and draws the pod's devices.
func (d *demo) show(ctx context.Context, pod, example string) error {
	start := time.Now()
	if err := d.apply(ctx, example); err != nil {
		return err
	}
	return d.showRunning(ctx, pod, start)
}

// showRunning waits until a pod runs, draws the devices of the pod's node, and prints the time since start.
func (d *demo) showRunning(ctx context.Context, pod string, start time.Time) error {
	pods, err := d.running(ctx, 1, named(pod))
	if err != nil {
		return err
	}
	took, node := time.Since(start), pods[0].Spec.NodeName
	i := slices.IndexFunc(d.sites, func(s site) bool { return s.node == node })
	if i < 0 {
		return fmt.Errorf("pod %s runs on node %s, which has no devices", pod, node)
	}
	if err := d.draw(ctx, pod, d.sites[i]); err != nil {
		return err
	}
	devices, err := d.devices(ctx, d.sites[i], pod)
	d.say("   Pod %s runs on %s with %s. It took %.1f s.\n", pod, node, strings.Join(devices, ", "), took.Seconds())
	return err
}

// devices returns the names of a pod's devices on a node. If pod is "", it returns the free devices.
func (d *demo) devices(ctx context.Context, s site, pod string) (names []string, err error) {
	owners, err := d.owners(ctx, s.node)
	for _, device := range s.Topology.Devices {
		if owners[device.Name] == pod {
			names = append(names, device.Name)
		}
	}
	// Shorter names first, so that device-9 comes before device-10.
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	return names, err
}

// showWaiting waits until a pod is unschedulable with a message that contains text, and prints the message.
func (d *demo) showWaiting(ctx context.Context, pod, text string) error {
	message, err := d.waiting(ctx, pod, text)
	if err != nil {
		return err
	}
	d.lines(bar, wrapped(message))
	return nil
}
