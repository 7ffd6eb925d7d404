// The JSON of the private API: one file per resource, each with the schemas (from which OpenAPI is generated), the types
// that the UI shares, and the mapping from the core's names. Source: PostHog's public REST API, where it has the resource.

export * from './management/cohorts.ts'
export * from './management/events.ts'
export * from './management/explanation.ts'
export * from './management/explanation-shapes.ts'
export * from './management/flags.ts'
export * from './management/groups.ts'
export * from './management/keys.ts'
export * from './management/member-csv.ts'
export * from './management/persons.ts'
export * from './management/projects.ts'
export * from './management/replay-messages.ts'
export * from './management/status.ts'
export * from './management/users.ts'
