// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bytes"
	"crypto/rand"
	"encoding/csv"
	"fmt"
	"strings"
)

// AdminUser is the user of the administrator's kubeconfig. It is in the group system:masters, which RBAC does not restrict.
const AdminUser = "celset-admin"

// A User is a user who can authenticate to the API server with a token.
type User struct {
	// Name is the name in RBAC subjects of kind User, such as "system:kube-scheduler".
	Name string
	// Groups are the names in RBAC subjects of kind Group. The API server adds system:authenticated.
	Groups []string
}

// An account is a user with its token.
type account struct {
	User
	token string
}

func validateUsers(users []User) error {
	seen := map[string]bool{AdminUser: true}
	for i, user := range users {
		switch {
		case user.Name == "":
			return fmt.Errorf("options: Users[%d]: Name is empty", i)
		case seen[user.Name]:
			return fmt.Errorf("options: Users[%d]: Name %q is taken", i, user.Name)
		}
		seen[user.Name] = true
		for _, group := range user.Groups {
			if group == "" || strings.Contains(group, ",") {
				return fmt.Errorf("options: Users[%d] (%s): group %q is not usable: it must not be empty or contain a comma", i, user.Name, group)
			}
		}
	}
	return nil
}

// newAccounts gives the administrator and the users a random token each.
func newAccounts(users []User) []account {
	admin := User{Name: AdminUser, Groups: []string{"system:masters"}}
	accounts := []account{{User: admin, token: rand.Text()}}
	for _, user := range users {
		accounts = append(accounts, account{User: user, token: rand.Text()})
	}
	return accounts
}

// tokenFile renders accounts for kube-apiserver's --token-auth-file: token, name, uid and groups on each line.
func tokenFile(accounts []account) ([]byte, error) {
	var out bytes.Buffer
	writer := csv.NewWriter(&out)
	for _, a := range accounts {
		record := []string{a.token, a.Name, a.Name}
		if len(a.Groups) > 0 {
			record = append(record, strings.Join(a.Groups, ","))
		}
		if err := writer.Write(record); err != nil {
			return nil, fmt.Errorf("token file: user %s: %w", a.Name, err)
		}
	}
	writer.Flush()
	return out.Bytes(), writer.Error()
}
