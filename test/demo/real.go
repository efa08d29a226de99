// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"fmt"
	"io/fs"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/celset/celset/test/realnode"
	"github.com/celset/celset/test/story"
)

// RunReal shows a pod with four connected devices on a node that runs real containers, including the log of the container. The
// node's topology driver must have the flags of the story [story.Ring].
func RunReal(ctx context.Context, node string, options Options) error {
	d, err := newDemo(options)
	if err != nil {
		return err
	}
	ring := site{story.Ring(), node, []string{"mla-1"}}
	d.sites = []site{ring}
	if err := d.setUpReal(ctx, ring); err != nil {
		return err
	}
	d.say("A pod that wants four connected accelerators (%s):\n", ring.Manifest)
	manifest, err := fs.ReadFile(d.Examples, ring.Manifest)
	if err != nil {
		return err
	}
	adapted, err := realnode.AdaptManifest(manifest)
	if err != nil {
		return fmt.Errorf("%s: %w", ring.Manifest, err)
	}
	start := time.Now()
	if err := d.applyText(ctx, string(adapted)); err != nil {
		return err
	}
	if err := d.showRunning(ctx, ring.Pod, start); err != nil {
		return err
	}
	log, err := d.containerLog(ctx, ring.Pod)
	if err != nil {
		return err
	}
	d.say("This is the log of its container:\n")
	d.lines(margin, log)
	return nil
}

// setUpReal waits until the driver has published its devices, and until another pod uses some of them.
func (d *demo) setUpReal(ctx context.Context, s site) error {
	err := until(ctx, func(ctx context.Context) (bool, error) {
		var published resourceapi.ResourceSliceList
		err := d.client.List(ctx, &published, client.MatchingFields{resourceapi.ResourceSliceSelectorNodeName: s.node})
		return len(published.Items) > 0, err
	})
	if err != nil {
		return fmt.Errorf("wait until the driver of node %s publishes devices: %w", s.node, err)
	}
	if err := d.apply(ctx, "deviceclasses.yaml"); err != nil {
		return err
	}
	if err := d.occupy(ctx, s, realnode.Adapt); err != nil {
		return err
	}
	d.say("A node with kubelet, containerd and runc. The driver celset-topology-driver publishes a")
	d.say("ring of eight accelerators on it; a pod of the default scheduler profile has one.\n")
	return d.draw(ctx, "", s)
}

// containerLog waits until the container has printed its last line, and returns its log.
func (d *demo) containerLog(ctx context.Context, pod string) (log string, err error) {
	err = until(ctx, func(ctx context.Context) (bool, error) {
		content, err := d.kube.CoreV1().Pods(namespace).GetLogs(pod, &corev1.PodLogOptions{}).DoRaw(ctx)
		log = string(content)
		return strings.Contains(log, "This container has "), err
	})
	if err != nil {
		return "", fmt.Errorf("log of pod %s: %w; last: %q", pod, err, log)
	}
	return log, nil
}
