// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubectlcelset has tests of the plugin kubectl-celset, and no code of its own. Scripts run the plugin as users do, on
// files and without a cluster. Tests on a cluster are in test/integration.
package kubectlcelset
