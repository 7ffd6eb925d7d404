// The JSON of the private API: one file per resource, each with the schemas (from which OpenAPI is generated), the types
// that the UI shares, and the mapping from the core's names. Source: PostHog's public REST API, where it has the resource.

export * from './cohorts.ts'
export * from './events.ts'
export * from './explanation.ts'
export * from './explanation-shapes.ts'
export * from './flags.ts'
export * from './groups.ts'
export * from './keys.ts'
export * from './member-csv.ts'
export * from './persons.ts'
export * from './projects.ts'
export * from './replay-messages.ts'
export * from './status.ts'
export * from './users.ts'
