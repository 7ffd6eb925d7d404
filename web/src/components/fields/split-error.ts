/** What is known of an error of the API: the field that it is about. */
interface FieldFault extends Error {
  readonly attr?: string | null
}

export interface SplitError<Field extends string> {
  /** What is shown at a field, in place of its help. */
  readonly errors: { readonly [F in Field]?: string }
  /** What is shown for the whole form. */
  readonly rest: Error | null
}

/** @param fields those of the form. An error about another one is shown for the whole form. */
export function splitError<Field extends string>(
  error: FieldFault | null,
  fields: readonly Field[],
): SplitError<Field> {
  const none: SplitError<Field>['errors'] = {}
  const field = fields.find(name => name === error?.attr)
  if (error === null || field === undefined) return { errors: none, rest: error }
  return { errors: { ...none, [field]: error.message }, rest: null }
}
