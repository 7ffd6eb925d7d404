// Endpoints of one item of a project (a flag, a cohort, …); each is called with the item that its path names.

import type { Static, TSchema } from 'typebox'
import type { WireError } from '#wire/wire-error.ts'
import { type Answer, refusal } from './answers.ts'
import {
  type EndpointDeps,
  type ManagementRoute,
  type ProjectCall,
  type ProjectEndpoint,
  projectRoutes,
} from './endpoint.ts'
import type { QuerySpec } from './query-params.ts'

export interface ProjectItem<T> {
  /** The parameter of the path that names the item. */
  readonly param: string
  /** @param id the value of the parameter. */
  readonly find: (projectId: number, id: string) => Promise<T | null>
  /** The 404 when there is no such item. */
  readonly missing: WireError
}

export interface ItemCall<T, Q extends QuerySpec, B> extends ProjectCall<Q, B> {
  readonly item: T
}

export interface ItemEndpoint<T, Q extends QuerySpec, S extends TSchema>
  extends Omit<ProjectEndpoint<Q, S>, 'prefixes' | 'handle'> {
  readonly handle: (call: ItemCall<T, Q, Static<S>>) => Promise<Answer>
}

export function itemRoutes<T, Q extends QuerySpec, S extends TSchema>(
  deps: EndpointDeps,
  { param, find, missing }: ProjectItem<T>,
  endpoint: ItemEndpoint<T, Q, S>,
): ManagementRoute[] {
  return projectRoutes<Q, S>(deps, {
    ...endpoint,
    handle: async call => {
      const item = await find(call.project.id, call.params[param]!)
      return item === null ? refusal(missing) : endpoint.handle({ ...call, item })
    },
  })
}

/** Reads a numeric path parameter; null when the text is not a number. */
export function parseIdNumber(text: string): number | null {
  return /^\d{1,15}$/.test(text) ? Number(text) : null
}
