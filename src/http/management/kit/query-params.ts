// Parameters of a query string, each with its schema (for OpenAPI) and its reader. An empty parameter counts as absent,
// since browsers' forms send such parameters; an empty filter is an error, because the answer would contain everything. If
// a parameter is repeated, its last value counts. Unlike in PostHog, unknown parameters are refused: an ignored filter
// would return too much, and an ignored option would look applied.

import Type, { type TSchema } from 'typebox'
import { isUuid } from '#core/events/uuid.ts'
import { err, ok, type Result } from '#core/result.ts'
import type { WireError } from '#wire/wire-error.ts'
import { createInvalidError, createInvalidInputError, createRequiredError } from './answers.ts'
import { findMisspeltName } from './misspelt-names.ts'

export interface QueryParam<T> {
  readonly schema: TSchema
  readonly required: boolean
  /** The parameter narrows the answer, so an empty value is an error: most likely, a script's variable is empty. */
  readonly isFilter?: true
  read(text: string | undefined, name: string): Result<T, WireError>
  /** For a parameter that may be repeated: gets all texts that are not empty, while `read` gets only the last. */
  readAll?(texts: readonly string[], name: string): Result<T, WireError>
}

export type QuerySpec = Readonly<Record<string, QueryParam<unknown>>>
export type QueryValues<Q extends QuerySpec> = {
  readonly [K in keyof Q]: Q[K] extends QueryParam<infer T> ? T : never
}

/** All parameters of a request, or the error of the first parameter that is unknown or cannot be read. */
export function readQueryParams(spec: QuerySpec, query: object): Result<Record<string, unknown>, WireError> {
  const unknown = findUnknownParam(spec, query)
  if (unknown !== null) return err(unknown)
  const values: Record<string, unknown> = {}
  for (const [name, param] of Object.entries(spec)) {
    const sent: unknown = Object.hasOwn(query, name) ? query[name as keyof typeof query] : undefined
    const texts = [sent].flat().filter(text => typeof text === 'string')
    const last = texts.at(-1)
    if (param.isFilter && texts.includes(''))
      return err(createInvalidInputError(name, 'Must not be empty: omit it to apply no filter.'))
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

/**
 * Parameters that PostHog's tools add to any request and that are ignored here: `basic` omits fields, `client_query_id`
 * names a query for cancellation, `_` bypasses caches. `format` must be `json`, the only format.
 */
const idleParams: Readonly<Record<string, (texts: readonly unknown[]) => boolean>> = {
  basic: () => true,
  client_query_id: () => true,
  _: () => true,
  format: texts => texts.every(text => text === 'json'),
}

function findUnknownParam(spec: QuerySpec, query: object): WireError | null {
  const known = Object.keys(spec)
  const misspelt = findMisspeltName('parameter', query, known, new Set(Object.keys(idleParams)))
  if (misspelt !== null) return misspelt
  for (const [name, sent] of Object.entries(query)) {
    if (known.includes(name) || (Object.hasOwn(idleParams, name) && idleParams[name]!([sent].flat()))) continue
    const read = known.filter(each => !('deprecated' in spec[each]!.schema)).join(', ')
    return createInvalidInputError(
      name,
      `Unknown parameter ${name}. ${read === '' ? 'This endpoint has no parameters' : `Known parameters: ${read}`}.`,
    )
  }
  return null
}

/** A parameter that may be absent but not empty. */
export function filterParam<T>(
  schema: TSchema,
  read: (text: string, name: string) => Result<T, WireError>,
): QueryParam<T | undefined> {
  return { ...optionalParam(schema, read), isFilter: true }
}

/** A parameter that may be absent. */
export function optionalParam<T>(
  schema: TSchema,
  read: (text: string, name: string) => Result<T, WireError>,
): QueryParam<T | undefined> {
  return { schema, required: false, read: (text, name) => (text === undefined ? ok(undefined) : read(text, name)) }
}

export function addDefaultValue<T>(param: QueryParam<T | undefined>, value: T): QueryParam<T> {
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
      return read.value === undefined ? err(createRequiredError(name)) : ok(read.value)
    },
  }
}

const textLengthMax = 1_000

/** Text without NUL: no stored name or id contains one, and databases refuse it or end the text there. */
export function textParam(description: string): QueryParam<string | undefined> {
  return filterParam(Type.String({ description, minLength: 1, maxLength: textLengthMax }), readText)
}

/** Text as in `textParam`, but it may be empty, since every text contains the empty text. */
export function searchParam(description: string): QueryParam<string | undefined> {
  return optionalParam(Type.String({ description, maxLength: textLengthMax }), readText)
}

function readText(text: string, name: string): Result<string, WireError> {
  if (text.length > textLengthMax)
    return err(createInvalidInputError(name, `Must have at most ${textLengthMax} characters.`))
  return text.includes('\0') ? err(createInvalidInputError(name, 'Must not contain NUL characters.')) : ok(text)
}

/** Texts as in `textParam`, one for each time the parameter appears; undefined when it never does. */
export function textListParam(description: string, countMax = 100): QueryParam<readonly string[] | undefined> {
  const one = textParam(description)
  const readAll = (texts: readonly string[], name: string): Result<readonly string[] | undefined, WireError> => {
    if (texts.length > countMax) return err(createInvalidInputError(name, `At most ${countMax} values.`))
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

/** A whole number within bounds. */
export function wholeNumberParam(options: {
  description: string
  minimum: number
  maximum?: number
}): QueryParam<number | undefined> {
  const { description, minimum, maximum } = options
  const schema = Type.Integer({ description, minimum, maximum: maximum ?? Number.MAX_SAFE_INTEGER })
  return optionalParam(schema, (text, name) => {
    const value = /^-?\d{1,18}$/.test(text) ? Number(text) : Number.NaN
    if (Number.isNaN(value)) return err(createInvalidError(name, 'A valid whole number is required.'))
    if (value < minimum) return err(createInvalidInputError(name, `Must be at least ${minimum}.`))
    if (maximum !== undefined && value > maximum)
      return err(createInvalidInputError(name, `Must be at most ${maximum}.`))
    return ok(value)
  })
}

/** One of a few choices. */
export function choiceParam<const T extends string>(
  choices: readonly T[],
  description: string,
): QueryParam<T | undefined> {
  const schema = Type.Union(
    choices.map(choice => Type.Literal(choice)),
    { description },
  )
  return optionalParam(schema, (text, name) => {
    const chosen = choices.find(choice => choice === text)
    return chosen === undefined
      ? err(createInvalidInputError(name, `Must be one of ${choices.join(', ')}.`))
      : ok(chosen)
  })
}

/** Like `choiceParam`, but the OpenAPI document lists the choices as an enum. */
export function enumParam<const T extends string>(choices: readonly T[], description: string) {
  return { ...choiceParam(choices, description), schema: Type.String({ enum: [...choices], description }) }
}

export function booleanParam(description: string): QueryParam<boolean | undefined> {
  return filterParam(Type.Boolean({ description }), (text, name) => {
    const folded = text.toLowerCase()
    if (folded === 'true' || folded === '1') return ok(true)
    if (folded === 'false' || folded === '0') return ok(false)
    return err(createInvalidError(name, 'Must be true or false.'))
  })
}

/** Refuses a parameter of PostHog's API that is not supported: ignoring it would return too much. */
export function unsupportedParam(instead: string): QueryParam<undefined> {
  const description = `Not supported: ${instead}`
  return {
    // Allows only an empty value, which counts as absent.
    schema: Type.String({ description, deprecated: true, maxLength: 0 }),
    required: false,
    read: (text, name) => (text === undefined ? ok(undefined) : err(createInvalidInputError(name, description))),
  }
}

/** A parameter of PostHog's API that has no effect here, whatever its value. */
export function ignoredParam(description: string): QueryParam<undefined> {
  return optionalParam(Type.String({ description }), () => ok(undefined))
}

/**
 * For lists that are paged by `cursor`: if `offset` and `page` were ignored, clients would get the first page again and
 * again.
 */
export function unsupportedOffsetParams() {
  const firstPageParam = (first: string): QueryParam<undefined> => {
    const refused = unsupportedParam(`only ${first}, the first page. Follow next for more pages.`)
    return { ...refused, read: (text, name) => refused.read(text === first ? undefined : text, name) }
  }
  return { offset: firstPageParam('0'), page: firstPageParam('1') }
}

/** `cursor` of a list, from `next` of the previous page. @param parse returns null for a text that is not a cursor. */
export function cursorParam<C>(parse: (text: string) => C | null): QueryParam<C | undefined> {
  const schema = Type.String({ description: 'Position after the previous page; part of `next`.' })
  return optionalParam(schema, (text, name) => {
    const cursor = parse(text)
    return cursor === null
      ? err(createInvalidError(name, 'Not a cursor: use the URL in `next` unchanged.'))
      : ok(cursor)
  })
}

/** A UUID in lower case. */
export function uuidParam(description: string): QueryParam<string | undefined> {
  return filterParam(Type.String({ format: 'uuid', description }), (text, name) =>
    isUuid(text) ? ok(text.toLowerCase()) : err(createInvalidError(name, 'Must be a valid UUID.')),
  )
}

const offsetMax = 10_000_000

/** `limit` of lists. A value above the maximum is refused, since the client would take a shorter answer to be complete. */
export function limitParam(limitDefault = 100, limitMax = 10_000) {
  const description = `Results per page. Default: ${limitDefault}, maximum: ${limitMax}.`
  return addDefaultValue(wholeNumberParam({ description, minimum: 1, maximum: limitMax }), limitDefault)
}

/** `limit` and `offset` of lists. */
export function pageParams(limitDefault?: number, limitMax?: number) {
  return {
    limit: limitParam(limitDefault, limitMax),
    offset: addDefaultValue(
      wholeNumberParam({ description: 'Number of results to skip.', minimum: 0, maximum: offsetMax }),
      0,
    ),
  }
}
