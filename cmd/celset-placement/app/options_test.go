// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFlags(t *testing.T) {
	tests := map[string]struct {
		args []string
		err  string
	}{
		"unknown flag":          {[]string{"--nonsense"}, "unknown flag: --nonsense"},
		"argument":              {[]string{"now"}, `unknown command "now"`},
		"no address of metrics": {[]string{"--kubeconfig=testdata/kubeconfig.yaml", "--metrics-bind-address="}, "--metrics-bind-address is empty"},
		"no kubeconfig":         {[]string{"--kubeconfig=/does/not/exist"}, "set --kubeconfig, or run in a pod"},
		"no workers":            {[]string{"--kubeconfig=testdata/kubeconfig.yaml", "--concurrent-placement-syncs=0"}, "--concurrent-placement-syncs: 0 is not positive"},
		"no time":               {[]string{"--kubeconfig=testdata/kubeconfig.yaml", "--evaluation-timeout=0s"}, "--evaluation-timeout 0s must be positive"},
		"too long a turn":       {[]string{"--kubeconfig=testdata/kubeconfig.yaml", "--evaluation-turn=6s"}, "at most --evaluation-turn 6s, which must be at most --placement-timeout 5s"},
		"no round":              {[]string{"--kubeconfig=testdata/kubeconfig.yaml", "--multikueue-round-duration=0s"}, "--multikueue-round-duration: 0s is not positive"},
		"half a second":         {[]string{"--kubeconfig=testdata/kubeconfig.yaml", "--now-resolution=1500ms"}, "--now-resolution: 1.5s must be whole seconds, at least 1s"},
		"short lease":           {[]string{"--kubeconfig=testdata/kubeconfig.yaml", "--leader-elect-lease-duration=5s"}, "must be longer than --leader-elect-renew-deadline 10s"},
		"no address":            {[]string{"--kubeconfig=testdata/kubeconfig.yaml", "--debug-bind-address="}, "--debug-bind-address is empty"},
		"unknown inventory":     {[]string{"--kubeconfig=testdata/kubeconfig.yaml", "--inventory=Node"}, `--inventory: "Node" is unknown; use ManagedCluster or ClusterProfile`},
		"no namespace":          {[]string{"--kubeconfig=testdata/kubeconfig.yaml", "--inventory=ClusterProfile"}, "--inventory=ClusterProfile needs --inventory-namespace"},
		"needless namespace":    {[]string{"--kubeconfig=testdata/kubeconfig.yaml", "--inventory-namespace=fleet"}, "--inventory-namespace=fleet needs --inventory=ClusterProfile"},
		"decisions on nothing":  {[]string{"--kubeconfig=testdata/kubeconfig.yaml", "--write-profile-decisions"}, "--write-profile-decisions needs --inventory=ClusterProfile"},
		"eager candidate":       {[]string{"--kubeconfig=testdata/kubeconfig.yaml", "--leader-elect-retry-period=11s"}, "longer than --leader-elect-retry-period 11s"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o := newOptions()
			command := newCommand(o)
			// Logging flags can be applied only once per process, so the test runs only the other steps of the command.
			err := command.ParseFlags(test.args)
			if err == nil {
				err = command.ValidateArgs(command.Flags().Args())
			}
			if err == nil {
				err = o.Run(t.Context(), o.manager)
			}
			require.ErrorContains(t, err, test.err)
		})
	}
}
