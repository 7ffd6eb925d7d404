// Parts of the rows of an answer or a store, to compare with expected values.

type With<Name extends PropertyKey> = { readonly [Each in Name]?: unknown }

/** The value of one field in each row. */
export function fieldOf<Name extends PropertyKey, Row extends With<Name>>(
  rows: readonly Row[],
  name: Name,
): Row[Name][] {
  return rows.map(row => row[name])
}

/** The values of several fields in each row. */
export function fieldsOf<Name extends PropertyKey>(rows: readonly With<Name>[], ...names: readonly Name[]) {
  return rows.map(row => names.map(name => row[name]))
}
