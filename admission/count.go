// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/celset/celset/apis/celset/v1alpha1"
)

// maxResults is the maximum number of devices in a claim. The API server stores claims that ask for more, but their pods wait
// forever.
const maxResults = resourceapi.AllocationResultsMaxSize

// counts rejects a claim that asks for more devices than a claim can have, in one request or in all requests together. If a
// request has alternatives, the smallest one counts. counts ignores claims that do not use celset.
func (j *judgement) counts(classes v1alpha1.ClassGetter) {
	if !j.concernsCelset(classes) {
		return
	}
	sum, tooMany := 0, false
	for i := range j.carrier.Spec.Devices.Requests {
		request, path := &j.carrier.Spec.Devices.Requests[i], j.devices.Child("requests").Index(i)
		least := 0
		if exactly := request.Exactly; exactly != nil {
			if least = countOf(exactly.AllocationMode, exactly.Count); least > maxResults {
				j.Errors = append(j.Errors, tooManyDevices(path.Child("exactly", "count"), exactly.Count))
				tooMany = true
			}
		}
		for k := range request.FirstAvailable {
			alternative := &request.FirstAvailable[k]
			count := countOf(alternative.AllocationMode, alternative.Count)
			if count > maxResults {
				j.Errors = append(j.Errors, tooManyDevices(path.Child("firstAvailable").Index(k).Child("count"), alternative.Count))
				tooMany = true
			}
			if k == 0 || count < least {
				least = count
			}
		}
		sum += least
	}
	if sum > maxResults && !tooMany {
		j.Errors = append(j.Errors, field.Invalid(j.devices.Child("requests"), sum,
			fmt.Sprintf("the requests together ask for at least this many devices, but a claim can have at most %d: lower the counts, or use several claims", maxResults)))
	}
}

func tooManyDevices(path *field.Path, count int64) *field.Error {
	return field.Invalid(path, count, fmt.Sprintf("a claim can have at most %d devices: lower the count, or use several claims", maxResults))
}

// countOf returns the smallest number of devices that a request can get. It returns at most maxResults+1, because users choose
// the counts and their sum could overflow.
func countOf(mode resourceapi.DeviceAllocationMode, count int64) int {
	if mode == resourceapi.DeviceAllocationModeAll {
		return 1
	}
	return int(min(max(1, count), maxResults+1))
}

// concernsCelset reports whether celset's constraints, definitions or preferences apply to the claim, from the claim itself or
// as defaults of classes.
func (j *judgement) concernsCelset(classes v1alpha1.ClassGetter) bool {
	ofClass := func(has func(*resourceapi.DeviceClass) bool) func(string) bool {
		return func(name string) bool {
			class, err := classes.Get(name)
			return err == nil && has(class)
		}
	}
	claim := &resourceapi.ResourceClaim{Spec: *j.carrier.Spec}
	return v1alpha1.Defines(claim) || v1alpha1.HasConstraints(claim, ofClass(v1alpha1.HasDefaults)) ||
		v1alpha1.HasPreference(claim, ofClass(v1alpha1.HasPreferences))
}
