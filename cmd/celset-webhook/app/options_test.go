// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFlags(t *testing.T) {
	const kubeconfig = "--kubeconfig=testdata/kubeconfig.yaml"
	tests := map[string]struct {
		args []string
		err  string
	}{
		"unknown flag":          {[]string{"--nonsense"}, "unknown flag: --nonsense"},
		"argument":              {[]string{"now"}, `unknown command "now"`},
		"no address of metrics": {[]string{kubeconfig, "--metrics-bind-address="}, "--metrics-bind-address is empty"},
		"no kubeconfig":         {[]string{"--kubeconfig=/does/not/exist"}, "set --kubeconfig, or run in a pod"},
		"no devices":            {[]string{kubeconfig, "--devices-per-node=0"}, "--devices-per-node: 0 is not positive"},
		"no scheduler":          {[]string{kubeconfig, "--scheduler-names="}, "--scheduler-names: the list is empty"},
		"no port":               {[]string{kubeconfig, "--webhook-bind-address=:0"}, `--webhook-bind-address: ":0" is not an address with a port`},
		"placements of none":    {[]string{kubeconfig, "--all-placements"}, "has no effect without --check-placements"},
		"guard without time":    {[]string{kubeconfig, "--guard-allocations", "--guard-grace=0s"}, "--guard-grace: 0s is too short"},
		"lease of the guard":    {[]string{kubeconfig, "--guard-allocations", "--guard-renew-deadline=20s"}, "must be longer than the time for a renewal 20s"},
		"unknown certificates":  {[]string{kubeconfig, "--certificate-source=vault"}, `--certificate-source: "vault" is unknown; use self or files`},
		"short lifetime":        {[]string{kubeconfig, "--certificate-lifetime=9s"}, "--certificate-lifetime: 9s is too short; use at least 10s"},
		"no API server":         {[]string{kubeconfig}, "connection refused"},
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
