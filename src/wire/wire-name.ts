// The JSON name of a field of the core. This type lets the compiler check that an encoder or a schema has every field.

/** `hasExperiment` → `has_experiment`. */
export type WireName<Name extends string> = Name extends `${infer Head}${infer Tail}`
  ? `${Head extends Lowercase<Head> ? Head : `_${Lowercase<Head>}`}${WireName<Tail>}`
  : Name
