// Parameters of a query string, each with its schema (for OpenAPI) and the way it is read. A parameter that is empty
// counts as absent, as browsers' forms send it, unless it is a filter, which would then answer everything. Of a repeated
// one the last counts. Unknown ones are ignored, as PostHog does, unless they look like a known one misspelt, which would
// answer more than was asked for.

import Type, { type TSchema } from 'typebox'
import { isUuid } from '#core/events/uuid.ts'
import { err, ok, type Result } from '#core/result.ts'
import type { WireError } from '#wire/wire-error.ts'
import { invalid, invalidInput, required } from './answers.ts'
import { findMisspelt } from './misspelt.ts'

export interface QueryParam<T> {
  readonly schema: TSchema
  readonly required: boolean
  /** It narrows the answer, so an empty one is an error: most likely a script's variable is empty. */
  readonly isFilter?: true
  read(text: string | undefined, name: string): Result<T, WireError>
  /** Reads a parameter that may be repeated: gets all of its texts that are not empty, instead of the last one. */
  readAll?(texts: readonly string[], name: string): Result<T, WireError>
}

export type QuerySpec = Readonly<Record<string, QueryParam<unknown>>>
export type QueryValues<Q extends QuerySpec> = {
  readonly [K in keyof Q]: Q[K] extends QueryParam<infer T> ? T : never
}

/** All parameters of a request, or the error of the first that cannot be read. */
export function readQuery(spec: QuerySpec, query: object): Result<Record<string, unknown>, WireError> {
  const misspelt = findMisspelt('parameter', query, Object.keys(spec))
  if (misspelt !== null) return err(misspelt)
  const values: Record<string, unknown> = {}
  for (const [name, param] of Object.entries(spec)) {
    const sent: unknown = Object.hasOwn(query, name) ? query[name as keyof typeof query] : undefined
    const texts = [sent].flat().filter(text => typeof text === 'string')
    const last = texts.at(-1)
    if (param.isFilter && texts.includes(''))
      return err(invalidInput(name, 'It is empty: leave it out to filter by nothing.'))
    const read =
      param.readAll?.(
        texts.filter(text => text !== ''),
        name,
      ) ?? param.read(last === '' ? undefined : last, name)
    if (!read.ok) return read
    values[name] = read.value
  }
  return ok(values)
}

/** A parameter that may be absent, and is not empty when it is there. */
export function filterParam<T>(
  schema: TSchema,
  read: (text: string, name: string) => Result<T, WireError>,
): QueryParam<T | undefined> {
  return { ...optional(schema, read), isFilter: true }
}

/** A parameter that may be absent. */
export function optional<T>(
  schema: TSchema,
  read: (text: string, name: string) => Result<T, WireError>,
): QueryParam<T | undefined> {
  return { schema, required: false, read: (text, name) => (text === undefined ? ok(undefined) : read(text, name)) }
}

export function withDefault<T>(param: QueryParam<T | undefined>, value: T): QueryParam<T> {
  return {
    ...(param.isFilter && { isFilter: true }),
    schema: param.schema,
    required: false,
    read(text, name) {
      const read = param.read(text, name)
      return read.ok ? ok(read.value ?? value) : read
    },
  }
}

export function requiredParam<T>(param: QueryParam<T | undefined>): QueryParam<T> {
  return {
    schema: param.schema,
    required: true,
    read(text, name) {
      const read = param.read(text, name)
      if (!read.ok) return read
      return read.value === undefined ? err(required(name)) : ok(read.value)
    },
  }
}

const textLengthMax = 1_000

/** Text without NUL, which nothing that is stored as a name or an id holds and databases refuse or end at. */
export function textParam(description: string): QueryParam<string | undefined> {
  return filterParam(Type.String({ description, minLength: 1, maxLength: textLengthMax }), readText)
}

/** Text as `textParam` takes it, of which the empty one is no filter: it is a part of everything. */
export function searchParam(description: string): QueryParam<string | undefined> {
  return optional(Type.String({ description, maxLength: textLengthMax }), readText)
}

function readText(text: string, name: string): Result<string, WireError> {
  if (text.length > textLengthMax) return err(invalidInput(name, `At most ${textLengthMax} characters are looked at.`))
  return text.includes('\0') ? err(invalidInput(name, 'NUL is no part of any text.')) : ok(text)
}

/** Texts as `textParam` takes them, one for each time that the parameter is there; undefined without any. */
export function textListParam(description: string, countMax = 100): QueryParam<readonly string[] | undefined> {
  const one = textParam(description)
  const readAll = (texts: readonly string[], name: string): Result<readonly string[] | undefined, WireError> => {
    if (texts.length > countMax) return err(invalidInput(name, `At most ${countMax} of them.`))
    for (const text of texts) {
      const read = one.read(text, name)
      if (!read.ok) return read
    }
    return ok(texts.length === 0 ? undefined : texts)
  }
  return {
    schema: Type.Array(one.schema, { description, maxItems: countMax }),
    required: false,
    isFilter: true,
    read: (text, name) => readAll(text === undefined ? [] : [text], name),
    readAll,
  }
}

/** A whole number; above `clampTo` it becomes `clampTo`. */
export function wholeNumberParam(options: {
  description: string
  minimum: number
  clampTo?: number
  maximum?: number
}): QueryParam<number | undefined> {
  const { description, minimum, clampTo = Number.MAX_SAFE_INTEGER, maximum } = options
  const schema = Type.Integer({ description, minimum, maximum: maximum ?? Number.MAX_SAFE_INTEGER })
  return optional(schema, (text, name) => {
    const value = /^-?\d{1,18}$/.test(text) ? Number(text) : Number.NaN
    if (Number.isNaN(value)) return err(invalid(name, 'A valid whole number is required.'))
    if (value < minimum) return err(invalidInput(name, `Must be at least ${minimum}.`))
    if (maximum !== undefined && value > maximum) return err(invalidInput(name, `Must be at most ${maximum}.`))
    return ok(Math.min(value, clampTo))
  })
}

export function booleanParam(description: string): QueryParam<boolean | undefined> {
  return filterParam(Type.Boolean({ description }), (text, name) => {
    const folded = text.toLowerCase()
    if (folded === 'true' || folded === '1') return ok(true)
    if (folded === 'false' || folded === '0') return ok(false)
    return err(invalid(name, 'Must be true or false.'))
  })
}

/** A parameter that PostHog's API has and this one does not: to leave it unread would answer more than was asked for. */
export function refusedParam(instead: string): QueryParam<undefined> {
  const description = `Not served: ${instead}`
  return {
    // There were only empty texts, which count as absent.
    schema: Type.String({ description, deprecated: true, maxLength: 0 }),
    required: false,
    read: (text, name) => (text === undefined ? ok(undefined) : err(invalidInput(name, description))),
  }
}

/** A UUID in lower case. */
export function uuidParam(description: string): QueryParam<string | undefined> {
  return filterParam(Type.String({ format: 'uuid', description }), (text, name) =>
    isUuid(text) ? ok(text.toLowerCase()) : err(invalid(name, 'Must be a valid UUID.')),
  )
}

const offsetMax = 10_000_000

/** `limit` and `offset` of lists; a limit above the maximum is cut to it. */
export function pageParams(limitDefault = 100, limitMax = 1_000) {
  return {
    limit: withDefault(
      wholeNumberParam({
        description: `Results per page, ${limitDefault} unless given, at most ${limitMax}.`,
        minimum: 1,
        clampTo: limitMax,
      }),
      limitDefault,
    ),
    offset: withDefault(wholeNumberParam({ description: 'Results to skip.', minimum: 0, maximum: offsetMax }), 0),
  }
}
