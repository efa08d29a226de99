// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/utils/clock"

	configv1alpha1 "github.com/celset/celset/apis/config/v1alpha1"
	"github.com/celset/celset/apis/setscores"
	"github.com/celset/celset/cmd/celset-scheduler/setpublisher"
	"github.com/celset/celset/plugin"
	"github.com/celset/celset/plugin/metrics"
)

// hubOptions holds two flags: the kubeconfig of the hub to which the scheduler publishes numbers of sets, and the name of this
// cluster on the hub. OCM's agents have flags with the same names.
type hubOptions struct{ kubeconfig, cluster string }

func (h *hubOptions) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&h.kubeconfig, "hub-kubeconfig", "",
		"Kubeconfig of the hub to which the scheduler publishes the AddOnPlacementScore "+setscores.Name+", which contains the number of sets of devices that fit in this cluster. By default, nothing is published.")
	flags.StringVar(&h.cluster, "cluster-name", "", "Name of this cluster on the hub.")
}

func (h *hubOptions) validate() error {
	if (h.kubeconfig == "") != (h.cluster == "") {
		return errors.New("--hub-kubeconfig and --cluster-name: set both flags or neither")
	}
	if h.cluster == "" {
		return nil
	}
	if problems := validation.IsDNS1123Label(h.cluster); len(problems) > 0 {
		return fmt.Errorf("--cluster-name=%s: %s", h.cluster, problems[0])
	}
	return nil
}

// publisher returns a publisher for the numbers of sets that the scheduler counts for its profiles.
func (h *hubOptions) publisher(profiles []config.KubeSchedulerProfile, measured *metrics.Metrics) (*setpublisher.Publisher, error) {
	p := &setpublisher.Publisher{
		Kubeconfig: h.kubeconfig, Cluster: h.cluster, Counted: measured.Fragmentation, Observe: measured.ObservePublication,
		Interval: configv1alpha1.DefaultFragmentationInterval, Clock: clock.RealClock{},
	}
	allocates := false
	for i := range profiles {
		if !enables(profiles[i].Plugins) {
			continue
		}
		args, err := argsOf(&profiles[i])
		if err != nil {
			return nil, err
		}
		allocates = allocates || args.Allocator != configv1alpha1.AllocatorUpstream
		// The interval applies to the whole scheduler. The plugin rejects profiles that set different intervals.
		if interval := args.FragmentationInterval; interval != nil {
			p.Interval = interval.Duration
		}
	}
	if !allocates || p.Interval == 0 {
		return nil, fmt.Errorf("--hub-kubeconfig: sets of devices are not counted: use a profile that has %s with an allocator other than Upstream, and a fragmentationInterval other than 0", plugin.Name)
	}
	return p, nil
}
