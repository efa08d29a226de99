// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

func TestOptionsValidate(t *testing.T) {
	for name, test := range map[string]struct {
		options Options
		err     string
	}{
		"zero": {},
		"users": {options: Options{Users: []User{
			{Name: "a", Groups: []string{"g", "h"}}, {Name: "b"},
		}}},
		"nameless user": {
			options: Options{Users: []User{{Name: "a"}, {}}},
			err:     "Users[1]: Name is empty",
		},
		"same user twice": {
			options: Options{Users: []User{{Name: "a"}, {Name: "a"}}},
			err:     `Users[1]: Name "a" is taken`,
		},
		"the administrator's name": {
			options: Options{Users: []User{{Name: AdminUser}}},
			err:     `Users[0]: Name "celset-admin" is taken`,
		},
		"group with a comma": {
			options: Options{Users: []User{{Name: "a", Groups: []string{"g,system:masters"}}}},
			err:     `Users[0] (a): group "g,system:masters" is not usable`,
		},
		"service accounts that nobody creates": {
			options: Options{ServiceAccountAdmission: true, SkipControllerManager: true},
			err:     "ServiceAccountAdmission needs the controller manager",
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := test.options.validate()
			if test.err == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, test.err)
			_, err = Start(t.Context(), test.options)
			require.ErrorContains(t, err, test.err, "before anything is started")
		})
	}
}

func TestServerBinaries(t *testing.T) {
	for name, test := range map[string]struct {
		options Options
		want    []string
	}{
		"all":   {want: []string{Etcd, KubeAPIServer, KubeControllerManager, Kwok}},
		"least": {options: Options{SkipControllerManager: true, SkipKwok: true}, want: []string{Etcd, KubeAPIServer}},
	} {
		t.Run(name, func(t *testing.T) {
			require.Empty(t, cmp.Diff(test.want, test.options.serverBinaries()))
		})
	}
}

func TestFeatureGateArgs(t *testing.T) {
	require.Empty(t, featureGateArgs(nil))
	require.Equal(t, []string{"--feature-gates=A=true,B=false,C=true"},
		featureGateArgs(map[string]bool{"C": true, "A": true, "B": false}))
}

func TestReadyTimeout(t *testing.T) {
	require.Equal(t, DefaultReadyTimeout, Options{}.readyTimeout())
	require.Equal(t, time.Second, Options{ReadyTimeout: time.Second}.readyTimeout())
}

func TestAPIServerArgs(t *testing.T) {
	cp := &ControlPlane{apiServerPort: 1234, etcdURL: "http://127.0.0.1:1", options: Options{
		FeatureGates:  map[string]bool{"G": true},
		APIServerArgs: []string{"--secure-port=4321"},
	}}
	args := cp.apiServerArgs()
	require.Contains(t, args, "--secure-port=1234")
	require.Contains(t, args, "--etcd-servers=http://127.0.0.1:1")
	require.Contains(t, args, "--feature-gates=G=true")
	require.Contains(t, args, "--disable-admission-plugins=TaintNodesByCondition,ServiceAccount")
	require.Equal(t, "--secure-port=4321", args[len(args)-1], "the caller's flags come last, so they win")

	cp.options.ServiceAccountAdmission = true
	require.Contains(t, cp.apiServerArgs(), "--disable-admission-plugins=TaintNodesByCondition")
}
