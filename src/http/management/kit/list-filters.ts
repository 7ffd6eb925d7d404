// Readers of the filters that PostHog's lists accept: lists of names and of ids, and the authors of items.

import Type, { type TSchema } from 'typebox'
import { type Author, computeAuthorNumber } from '#core/author.ts'
import { isUuid } from '#core/events/uuid.ts'
import { err, ok, type Result } from '#core/result.ts'
import type { FlagStore } from '#ports/state/flag-store.ts'
import type { WireError } from '#wire/wire-error.ts'
import { createInvalidError, createInvalidInputError } from './answers.ts'
import { parseJsonOrUndefined } from './property-filters.ts'
import { filterParam, type QueryParam } from './query-params.ts'

const namesMax = 100

/** A JSON list of names. */
export function namesParam(description: string): QueryParam<readonly string[] | undefined> {
  return filterParam(Type.String({ description }), (text, name) => {
    const names = parseJsonOrUndefined(text)
    const isList = Array.isArray(names) && names.every(item => typeof item === 'string')
    return isList
      ? checkNames(names, name)
      : err(createInvalidError(name, 'Must be a JSON list of names, such as ["paid"].'))
  })
}

/** Names that are separated by commas. */
export function commaListParam(description: string): QueryParam<readonly string[] | undefined> {
  return filterParam(Type.String({ description }), (text, name) => checkNames(text.split(','), name))
}

function checkNames(names: readonly string[], name: string): Result<readonly string[], WireError> {
  if (names.length > namesMax) return err(createInvalidInputError(name, `At most ${namesMax} names.`))
  return names.some(one => one.length > 1_000 || one.includes('\0'))
    ? err(createInvalidInputError(name, 'A name has at most 1,000 characters and no NUL.'))
    : ok(names)
}

/** UUIDs that are separated by commas, in lower case. */
export function uuidsParam(description: string): QueryParam<readonly string[] | undefined> {
  return filterParam(Type.String({ description }), (text, name) => {
    const ids = text.split(',').map(id => id.trim().toLowerCase())
    if (ids.length > namesMax) return err(createInvalidInputError(name, `At most ${namesMax} ids.`))
    return ids.every(isUuid) ? ok(ids) : err(createInvalidError(name, 'Must be comma-separated UUIDs.'))
  })
}

/** One author id, several separated by commas, or a JSON list of author ids. */
export function authorsParam(): QueryParam<readonly number[] | undefined> {
  const schema: TSchema = Type.String({
    description: 'Author ids (`created_by.id`): one, several separated by commas, or a JSON list.',
  })
  return filterParam(schema, (text, name) => {
    const list = text.startsWith('[') ? parseJsonOrUndefined(text) : text.split(',')
    const ids = Array.isArray(list)
      ? list.map(id => (/^\d{1,15}$/.test(String(id).trim()) ? Number(id) : null))
      : [null]
    if (ids.length > namesMax) return err(createInvalidInputError(name, `At most ${namesMax} ids.`))
    return ids.includes(null) ? err(createInvalidError(name, 'Must be author ids.')) : ok(ids as number[])
  })
}

/** Returns the authors with these ids; undefined when the request does not filter by author. */
export async function listChosenAuthors(
  store: Pick<FlagStore, 'listAuthors'>,
  projectId: number,
  ofWhat: Parameters<FlagStore['listAuthors']>[1],
  ids: readonly number[] | undefined,
): Promise<readonly Author[] | undefined> {
  if (ids === undefined) return undefined
  const authors = await store.listAuthors(projectId, ofWhat)
  return authors.filter(author => ids.includes(computeAuthorNumber(author)))
}

/** A parameter whose value is converted by `meaning`. */
export function convertParam<T, U>(param: QueryParam<T>, meaning: (value: T) => U): QueryParam<U> {
  const { schema, required } = param
  return {
    schema,
    required,
    read(text, name) {
      const read = param.read(text, name)
      return read.ok ? ok(meaning(read.value)) : read
    },
  }
}

/** Marks a parameter as one that narrows the answer, so that an empty value is an error. */
export function asFilter<T>(param: QueryParam<T>): QueryParam<T> {
  return { ...param, isFilter: true }
}
