// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package wellknown

// AnnotationConstraintNames is written and read by "kubectl celset convert". It keeps the names of constraints in a claim in
// KEP-5254's form, which has none.
const AnnotationConstraintNames = "celset.dev/constraint-names"
