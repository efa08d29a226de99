// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package arguments

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/version"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	kubefeatures "k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/validation"

	configv1alpha1 "github.com/celset/celset/apis/config/v1alpha1"
	"github.com/celset/celset/internal/testing/plugintest"
)

func TestArguments(t *testing.T) {
	defaults, err := Decode(nil, plugintest.Features(), utilfeature.DefaultFeatureGate)
	require.NoError(t, err)
	require.Equal(t, configv1alpha1.AllocatorConstrained, defaults.Allocator)
	decoded := ForUpstream(defaults, plugintest.Features())
	require.Equal(t, 10*time.Second, decoded.FilterTimeout.Duration, "upstream's default is for its own name only")
	require.Equal(t, 600*time.Second, decoded.BindingTimeout.Duration)

	given, err := Decode(&runtime.Unknown{Raw: []byte(`{"filterTimeout": "3s", "allocator": "All"}`)}, plugintest.Features(), utilfeature.DefaultFeatureGate)
	require.NoError(t, err)
	require.Equal(t, 3*time.Second, ForUpstream(given, plugintest.Features()).FilterTimeout.Duration)
	require.Equal(t, configv1alpha1.AllocatorAll, given.Allocator)

	_, err = Decode(&runtime.Unknown{Raw: []byte(`{"filterTimeuot": "3s"}`)}, plugintest.Features(), utilfeature.DefaultFeatureGate)
	require.ErrorContains(t, err, "filterTimeuot")
	_, err = Decode(&v1.Pod{}, plugintest.Features(), utilfeature.DefaultFeatureGate)
	require.ErrorContains(t, err, "got arguments of type *v1.Pod, want an object of kind DynamicResourcesCELArgs")
}

// TestArgumentsOfWhatIsOff checks that an argument whose feature is off is an error only if the configuration sets it.
func TestArgumentsOfWhatIsOff(t *testing.T) {
	off := plugintest.Features()
	off.EnableDRASchedulerFilterTimeout, off.EnableDRADeviceBindingConditions = false, false
	defaults, err := Decode(nil, off, utilfeature.DefaultFeatureGate)
	require.NoError(t, err)
	require.Error(t, validation.ValidateDynamicResourcesArgs(nil, ForUpstream(defaults, plugintest.Features()), off))
	require.NoError(t, validation.ValidateDynamicResourcesArgs(nil, ForUpstream(defaults, off), off))

	_, err = Decode(&runtime.Unknown{Raw: []byte(`{"filterTimeout": "3s", "bindingTimeout": "1m"}`)}, off, utilfeature.DefaultFeatureGate)
	require.ErrorContains(t, err, "args.filterTimeout: Forbidden: needs the feature gate DRASchedulerFilterTimeout, which is off: remove this argument, or enable the gate in the API server and the scheduler")
	require.ErrorContains(t, err, "args.bindingTimeout: Forbidden: needs the feature gate DRADeviceBindingConditions, which is off: ")

	older := featuregate.NewVersionedFeatureGate(version.MustParse("1.35"))
	require.NoError(t, older.AddVersioned(utilfeature.DefaultMutableFeatureGate.GetAllVersioned()))
	require.Equal(t, "DRADeviceBindingConditions, which is on by default since Kubernetes 1.36, but the version is 1.35", describeGate(older, kubefeatures.DRADeviceBindingConditions))
}
