// Package robots writes what a policy says into robots.txt and into the fields
// Content-Signal and Content-Usage, and reads those fields. It does not fetch.
package robots
