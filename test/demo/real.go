// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/realnode"
	"github.com/celset/celset/test/story"
)

// RunReal shows the first user story on a node that runs containers and has a topology
// driver with the story's flags, up to what the container knows of its devices. The
// error is nil only if all of it came out as it should.
func RunReal(ctx context.Context, node string, options Options) error {
	client, err := kubernetes.NewForConfig(options.Config)
	if err != nil {
		return err
	}
	d := &demo{Options: options, client: client, sites: []site{{story.Ring(), node, []string{"mla-1"}}}}
	return d.real(ctx, d.sites[0])
}

func (d *demo) real(ctx context.Context, s site) error {
	if err := d.setUpReal(ctx, s); err != nil {
		return err
	}
	d.say("A pod that wants four connected accelerators (%s):\n", s.Manifest)
	start := time.Now()
	if err := d.applyAdapted(ctx, s.Manifest); err != nil {
		return err
	}
	pod, err := d.waitRunning(ctx, s.Pod)
	if err != nil {
		return err
	}
	took := since(start)
	if err := d.draw(ctx, pod.Name, s); err != nil {
		return err
	}
	devices, err := d.devicesOf(ctx, pod)
	if err != nil {
		return err
	}
	lines, err := d.containerLog(ctx, pod.Name)
	if err != nil {
		return err
	}
	slices.Sort(devices)
	want := fmt.Sprintf("This container has 4 devices: %s", strings.Join(devices, ", "))
	if lines[len(lines)-1] != want || !s.Holds(devices) {
		return fmt.Errorf("pod %s should have four connected devices, its claim has %v, and the container says: %s",
			pod.Name, devices, strings.Join(lines, "\n"))
	}
	d.say("Pod %s runs on %s, %s after it was created. This is the log of its container:\n", pod.Name, s.node, took)
	d.say("   %s", strings.Join(lines, "\n   "))
	return nil
}

// setUpReal waits for the devices that the driver publishes, and has another pod take
// some.
func (d *demo) setUpReal(ctx context.Context, s site) error {
	if err := d.waitPublished(ctx, s); err != nil {
		return err
	}
	if err := d.apply(ctx, "deviceclasses.yaml", nil); err != nil {
		return err
	}
	if err := d.occupy(ctx, s, realnode.Adapt); err != nil {
		return err
	}
	if _, err := d.waitRunning(ctx, occupant(s)); err != nil {
		return err
	}
	d.say("A node with kubelet, containerd and runc. The driver celset-topology-driver publishes a")
	d.say("ring of eight accelerators on it; a pod of the default scheduler profile has one.\n")
	return d.draw(ctx, "", s)
}

func (d *demo) waitPublished(ctx context.Context, s site) error {
	err := wait.PollUntilContextTimeout(ctx, pollPeriod, patience, true, func(ctx context.Context) (bool, error) {
		published, err := d.client.ResourceV1().ResourceSlices().List(ctx, metav1.ListOptions{
			FieldSelector: resourceapi.ResourceSliceSelectorNodeName + "=" + s.node,
		})
		return err == nil && len(published.Items) > 0, err
	})
	if err != nil {
		return fmt.Errorf("node %s: wait until its driver has published devices: %w", s.node, err)
	}
	return nil
}

// applyAdapted applies an example with its pods as the node can run them.
func (d *demo) applyAdapted(ctx context.Context, example string) error {
	manifest, err := fs.ReadFile(d.Examples, example)
	if err != nil {
		return err
	}
	adapted, err := realnode.AdaptManifest(manifest)
	if err != nil {
		return fmt.Errorf("%s: %w", example, err)
	}
	_, err = controlplane.Apply(ctx, d.Config, adapted, controlplane.ApplyOptions{Namespace: namespace})
	return err
}

// containerLog returns what the container printed, once it has printed all.
func (d *demo) containerLog(ctx context.Context, pod string) ([]string, error) {
	var lines []string
	err := wait.PollUntilContextTimeout(ctx, pollPeriod, patience, true, func(ctx context.Context) (bool, error) {
		content, err := d.client.CoreV1().Pods(namespace).GetLogs(pod, &corev1.PodLogOptions{}).DoRaw(ctx)
		lines = strings.Split(strings.TrimSpace(string(content)), "\n")
		return err == nil && strings.HasPrefix(lines[len(lines)-1], "This container has "), err
	})
	if err != nil {
		return nil, fmt.Errorf("log of pod %s: %w; last: %q", pod, err, lines)
	}
	return lines, nil
}
