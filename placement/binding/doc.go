// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package binding binds ManagedClusterSets to namespaces for administrators who would
// rather grant rights than create ManagedClusterSetBindings: in each namespace with a
// ServiceAccount [ServiceAccount], [Add] keeps a ManagedClusterSetBinding for every
// existing set that this account may bind, that is may create on the subresource
// managedclustersets/bind.
//
//	kubectl create serviceaccount placement -n team
//	kubectl create clusterrole bind-eu --verb=create --resource-name=eu \
//	  --resource=managedclustersets.cluster.open-cluster-management.io/bind
//	kubectl create clusterrolebinding team-eu --clusterrole=bind-eu --serviceaccount=team:placement
//
// Which sets are meant is read from the ClusterRoles that ClusterRoleBindings give to
// the account itself, not to a group that it is in: what all accounts may do binds
// nothing. Whether it is granted a SubjectAccessReview says, so nothing is bound that
// the API server would not let the account bind.
//
// The account owns the bindings, which end with it, with the right and with the set.
// Bindings that others have created are left alone, and with an error nothing is
// unbound.
package binding
