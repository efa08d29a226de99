// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/apis/wellknown"
	"github.com/celset/celset/plugin/metrics"
)

// outOfRangeAnnotation lists the amounts that were removed from a slice. The annotation exists only in the informer's cache.
const outOfRangeAnnotation = "celset.dev/out-of-range"

// LimitQuantities makes the informer of ResourceSlices remove amounts that are out of range, so that no allocator reads them. A
// slice with removed amounts gets an event and is counted in a metric. LimitQuantities must be called before informers start.
func LimitQuantities(factory informers.SharedInformerFactory, recorder func() events.EventRecorderLogger, measured *metrics.Metrics) error {
	informer := factory.Resource().V1().ResourceSlices().Informer()
	err := informer.SetTransform(func(object any) (any, error) {
		if accessor, err := meta.Accessor(object); err == nil {
			// This transformation replaces the scheduler's own one, which also removes the managed fields.
			accessor.SetManagedFields(nil)
		}
		slice, ok := object.(*resourceapi.ResourceSlice)
		if !ok {
			return object, nil
		}
		if removed := allocator.LimitQuantities(slice); len(removed) > 0 {
			if slice.Annotations == nil {
				slice.Annotations = map[string]string{}
			}
			slice.Annotations[outOfRangeAnnotation] = strings.Join(removed[:min(len(removed), maxRemovedNamed)], ", ")
		}
		return slice, nil
	})
	if err != nil {
		return fmt.Errorf("limit amounts of ResourceSlices: %w", err)
	}
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { reportOutOfRange(object, recorder(), measured) },
		UpdateFunc: func(before, object any) {
			if outOfRange(before) != outOfRange(object) {
				reportOutOfRange(object, recorder(), measured)
			}
		},
	})
	return err
}

// maxRemovedNamed is the maximum number of removed amounts that the annotation names.
const maxRemovedNamed = 8

func outOfRange(object any) string {
	if slice, ok := object.(*resourceapi.ResourceSlice); ok {
		return slice.Annotations[outOfRangeAnnotation]
	}
	return ""
}

func reportOutOfRange(object any, recorder events.EventRecorderLogger, measured *metrics.Metrics) {
	removed := outOfRange(object)
	if removed == "" {
		return
	}
	measured.ObserveOutOfRange()
	if recorder != nil {
		recorder.Eventf(object.(*resourceapi.ResourceSlice), nil, v1.EventTypeWarning, wellknown.ReasonAmountsOutOfRange, wellknown.ActionReading,
			"The scheduler ignores amounts outside the range of an int64 in milli- to exa-units. Correct them in the driver. Ignored: %s", removed)
	}
}
