// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package debug

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/placement/report"
)

// withoutParameter is the index of a predicate that is left out.
const withoutParameter = "without"

// without returns the Placement as it is, or, if the query says so, a copy without one of its
// predicates: what would become of it if that went.
func without(object *clusterv1beta1.Placement, query url.Values) (*clusterv1beta1.Placement, error) {
	if !query.Has(withoutParameter) {
		return object, nil
	}
	text, predicates := query.Get(withoutParameter), object.Spec.Predicates
	i, err := strconv.Atoi(text)
	if err != nil || i < 0 || i >= len(predicates) {
		return nil, refusalOf(apierrors.NewBadRequest(fmt.Sprintf(
			"%s=%s names no predicate: the Placement has %d, counted from 0", withoutParameter, report.Clip(text, report.MaxReason), len(predicates))))
	}
	changed := object.DeepCopy()
	changed.Spec.Predicates = slices.Delete(changed.Spec.Predicates, i, i+1)
	return changed, nil
}
