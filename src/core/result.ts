// Success or a named failure, for everything that a caller is expected to handle. Thrown errors are for outages of the
// outside world (`ports/port-error.ts`) and for broken assumptions.

export type Ok<T> = { readonly ok: true; readonly value: T }
export type Err<E> = { readonly ok: false; readonly error: E }
export type Result<T, E> = Ok<T> | Err<E>

export function ok<T>(value: T): Ok<T> {
  return { ok: true, value }
}

export function err<E>(error: E): Err<E> {
  return { ok: false, error }
}
