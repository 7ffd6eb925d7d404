// What a field of the core is called in JSON. With it an encoder or a schema is checked to have every field.

/** `hasExperiment` → `has_experiment`. */
export type WireName<Name extends string> = Name extends `${infer Head}${infer Tail}`
  ? `${Head extends Lowercase<Head> ? Head : `_${Lowercase<Head>}`}${WireName<Tail>}`
  : Name
