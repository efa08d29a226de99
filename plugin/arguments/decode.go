// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package arguments

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-base/featuregate"
	kubefeatures "k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/validation"
	plfeature "k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"

	configv1alpha1 "github.com/celset/celset/apis/config/v1alpha1"
)

// Decode decodes the plugin's arguments and sets defaults. It returns an error if args sets an argument that needs a feature
// gate which is off. A default never causes this error.
func Decode(args runtime.Object, features plfeature.Features, gates featuregate.FeatureGate) (*configv1alpha1.DynamicResourcesCELArgs, error) {
	var raw []byte
	var upstreams config.DynamicResourcesArgs
	switch args := args.(type) {
	case nil:
	case *runtime.Unknown:
		if args != nil {
			raw = args.Raw
		}
	case *config.DynamicResourcesArgs:
		// The plugin is registered under the name of upstream's plugin, so it also gets upstream's arguments.
		if args != nil {
			upstreams = *args
		}
		if features.EnableDynamicResourceAllocation {
			if err := validation.ValidateDynamicResourcesArgs(nil, &upstreams, features); err != nil {
				return nil, err
			}
		}
	default:
		return nil, fmt.Errorf("got arguments of type %T, want an object of kind DynamicResourcesCELArgs", args)
	}
	decoded, err := configv1alpha1.DecodeArgs(raw, func(given *configv1alpha1.DynamicResourcesCELArgs, path *field.Path) field.ErrorList {
		var errs field.ErrorList
		if given.FilterTimeout != nil {
			errs = forbidden(errs, path.Child("filterTimeout"), filterTimeoutLacks(features), gates)
		}
		if given.BindingTimeout != nil {
			errs = forbidden(errs, path.Child("bindingTimeout"), BindingTimeoutLacks(features), gates)
		}
		return errs
	})
	if err != nil {
		return nil, err
	}
	decoded.FilterTimeout = cmp.Or(upstreams.FilterTimeout, decoded.FilterTimeout)
	decoded.BindingTimeout = cmp.Or(upstreams.BindingTimeout, decoded.BindingTimeout)
	return decoded, nil
}

// ForUpstream returns the arguments for upstream's plugin. It leaves out timeouts of features that are off, because upstream's
// plugin rejects them.
func ForUpstream(args *configv1alpha1.DynamicResourcesCELArgs, features plfeature.Features) *config.DynamicResourcesArgs {
	upstream := &config.DynamicResourcesArgs{}
	if len(filterTimeoutLacks(features)) == 0 {
		upstream.FilterTimeout = args.FilterTimeout
	}
	if len(BindingTimeoutLacks(features)) == 0 {
		upstream.BindingTimeout = args.BindingTimeout
	}
	return upstream
}

// filterTimeoutLacks returns the feature gates that the argument filterTimeout needs, as far as they are off.
func filterTimeoutLacks(features plfeature.Features) (off []featuregate.Feature) {
	if !features.EnableDRASchedulerFilterTimeout {
		off = append(off, kubefeatures.DRASchedulerFilterTimeout)
	}
	return off
}

// BindingTimeoutLacks returns the feature gates that the argument bindingTimeout needs, as far as they are off.
func BindingTimeoutLacks(features plfeature.Features) (off []featuregate.Feature) {
	if !features.EnableDRADeviceBindingConditions {
		off = append(off, kubefeatures.DRADeviceBindingConditions)
	}
	if !features.EnableDRAResourceClaimDeviceStatus {
		off = append(off, kubefeatures.DRAResourceClaimDeviceStatus)
	}
	return off
}

func forbidden(errs field.ErrorList, path *field.Path, off []featuregate.Feature, gates featuregate.FeatureGate) field.ErrorList {
	for _, gate := range off {
		errs = append(errs, field.Forbidden(path, fmt.Sprintf("needs the feature gate %s: remove this argument, or enable the gate in the API server and the scheduler",
			describeGate(gates, gate))))
	}
	return errs
}

// describeGate describes a gate that is off, and names the version that turns it on by default. Example:
// "DRADeviceBindingConditions, on by default since Kubernetes 1.36, but this is 1.35".
func describeGate(gates featuregate.FeatureGate, gate featuregate.Feature) string {
	off := fmt.Sprintf("%s, which is off", gate)
	versioned, ok := gates.(featuregate.MutableVersionedFeatureGate)
	if !ok {
		return off
	}
	this, since := versioned.EmulationVersion(), defaultSince(versioned.GetAllVersioned()[gate])
	if since == nil || this.AtLeast(since) {
		return off
	}
	return fmt.Sprintf("%s, which is on by default since Kubernetes %s, but the version is %s", gate, since, this)
}

// defaultSince returns the first version where a gate is on by default, or nil.
func defaultSince(specs featuregate.VersionedSpecs) *version.Version {
	for _, spec := range specs {
		if spec.Default {
			return spec.Version
		}
	}
	return nil
}
