// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package binding creates ManagedClusterSetBindings from RBAC rights, so that administrators grant rights instead of creating
// bindings. In each namespace with a ServiceAccount named [ServiceAccount], [Add] keeps a ManagedClusterSetBinding for every
// existing set that this account may bind. An account may bind a set if it may create the subresource managedclustersets/bind.
//
//	kubectl create serviceaccount placement -n team
//	kubectl create clusterrole bind-eu --verb=create --resource-name=eu \
//	  --resource=managedclustersets.cluster.open-cluster-management.io/bind
//	kubectl create clusterrolebinding team-eu --clusterrole=bind-eu --serviceaccount=team:placement
//
// Candidates are the sets named in ClusterRoles that ClusterRoleBindings grant to the account itself. Rights of groups are
// ignored, so a right of the group of all accounts binds nothing. A SubjectAccessReview confirms each candidate, so no set is
// bound that the API server would not let the account bind.
//
// The account owns the bindings. A binding is deleted with the account, the right or the set. The controller doesn't change
// bindings of other creators, and deletes nothing after an error.
package binding
