// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package twoschedulers

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/internal/env"
)

// TestEmulatesTheVersionOfTheAPIServer runs API servers that emulate older versions. celset-scheduler, from the overlay, must
// become ready, log the version that it emulates, and schedule pods.
func TestEmulatesTheVersionOfTheAPIServer(t *testing.T) {
	if os.Getenv(controlplane.KubernetesEnv) != "" {
		t.Skip("the API server is older itself")
	}
	older := controlplane.OlderKubernetes
	for _, minor := range older[:cases.Of(1, len(older))] {
		t.Run(minor, func(t *testing.T) {
			const driver = "ring.example.com"
			c := start(t, "--emulated-version="+minor)
			c.ring(t, driver, c.nodes(t, 1, "node")...)
			ours := c.install(t, "default-scheduler", controlplane.SchedulerOptions{})
			c.run(t, "constrained", env.CelsetProfile, driver)
			c.run(t, "plain", env.StockProfile, driver)
			c.requireServed(t, "constrained", "plain")
			env.RequireNothingForbidden(t, ours)
			log, err := os.ReadFile(ours.LogFile())
			require.NoError(t, err)
			require.Equal(t, 1, strings.Count(string(log), `"Emulating the older version of the API server" emulated="`+minor+`"`), string(log))
			ours.Stop()
		})
	}
}

// TestSchedulerAndVersionsItCantServe starts the scheduler with a fake API server whose version or kinds the scheduler can't
// work with.
func TestSchedulerAndVersionsItCantServe(t *testing.T) {
	program := env.Program(t, controlplane.CelsetScheduler)
	server := func(version string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/version":
				_, _ = w.Write([]byte(`{"major": "1", "gitVersion": "` + version + `"}`))
			case "/apis/resource.k8s.io/v1":
				w.Header().Set("Content-Type", "application/json")
				_, _ = w.Write([]byte(`{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "resource.k8s.io/v1", "resources": [
					{"name": "deviceclasses"}, {"name": "resourceclaims"}, {"name": "resourceslices"}]}`))
			default:
				http.NotFound(w, r)
			}
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	for name, tc := range map[string]struct {
		version, gates, want string
	}{
		"too old":             {"v1.33.5", "", "the API server offers Kubernetes 1.33: update the cluster to 1.34 or newer, because celset needs resource.k8s.io/v1"},
		"gate of later":       {"v1.35.0", "DRADerivedAttributes=true", "feature gates, with an API server that offers Kubernetes 1.35: cannot set feature gate DRADerivedAttributes to true, feature is PreAlpha at emulated version 1.35"},
		"gate without a kind": {"v1.36.1", "DRADeviceTaintRules=true", "the API server, which offers Kubernetes 1.36, does not serve resource.k8s.io/v1 devicetaintrules (watched because of the feature gate DRADeviceTaintRules: turn it off with --feature-gates=DRADeviceTaintRules=false)"},
		"no version":          {"unknown", "", "the API server has an invalid version"},
	} {
		t.Run(name, func(t *testing.T) {
			args := []string{"--master=" + server(tc.version), "--secure-port=0"}
			if tc.gates != "" {
				args = append(args, "--feature-gates="+tc.gates)
			}
			output, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
			require.Error(t, err)
			require.Contains(t, string(output), tc.want)
		})
	}
	for name, tc := range map[string]struct{ config, flag, want string }{
		"no kubeconfig": {flag: "--kubeconfig=/missing", want: "find the API server"},
		"no YAML":       {config: "profiles: [", flag: "--config=", want: "scheduler.yaml: error converting YAML to JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.config != "" {
				file := filepath.Join(t.TempDir(), "scheduler.yaml")
				require.NoError(t, os.WriteFile(file, []byte(tc.config), 0o600))
				tc.flag += file
			}
			output, err := exec.CommandContext(t.Context(), program, tc.flag).CombinedOutput()
			require.Error(t, err)
			require.Contains(t, string(output), tc.want)
		})
	}
}
