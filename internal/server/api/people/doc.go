// Package people answers the routes of users, projects, members, QOS and policy.
package people
