// The endpoints of declared resources, whose items are listed, created, read, changed and deleted alike. What a resource
// does not implement itself follows from its declaration: writes then just store the fields of the body.

import Type, { type Static, type TSchema } from 'typebox'
import type { JsonObject } from '#core/json.ts'
import type { Project } from '#core/project.ts'
import { type ItemOf, type Resource, readFields } from '#core/resource.ts'
import { type Item, type ResourceName, resources } from '#core/resources/resources.ts'
import { err, ok, type Result } from '#core/result.ts'
import type { ItemQuery, NewItem, ResourceStore } from '#ports/state/resource-store.ts'
import type { Written } from '#ports/state/written.ts'
import { type PostHogFields, postHogCommonFields } from '#wire/management/posthog-fields.ts'
import { buildBodySchemas, buildItemSchema, encodeItem } from '#wire/management/resource-json.ts'
import { countedPageSchema } from '#wire/management/shapes.ts'
import type { WireError } from '#wire/wire-error.ts'
import { answer, changedAtOnce, createNotFoundError, noContent, refusal } from './answers.ts'
import type { Caller } from './authenticate.ts'
import {
  type EndpointDeps,
  type ItemCall,
  itemRoutes,
  type ManagementRoute,
  type ProjectCall,
  type ProjectItem,
  parseIdNumber,
  projectRoutes,
} from './endpoint.ts'
import { readInstant } from './instants.ts'
import { answerCountedList, encodeRowsInBulk, type PageRequest } from './list-answers.ts'
import { pageParams, type QuerySpec, type QueryValues } from './query-params.ts'

export interface ResourceEndpoints<
  N extends ResourceName,
  T extends Item<N>,
  Q extends QuerySpec,
  C extends TSchema,
  U extends TSchema,
> {
  /** The resource, and the first part of its scopes: `survey` in `survey:read` and `survey:write`. */
  readonly resource: N
  /** The path of the list, and the prefix of each operation's id. */
  readonly tag: string
  readonly summaries?: Readonly<Partial<Record<'list' | 'create' | 'retrieve' | 'update' | 'destroy', string>>>
  readonly schemas?: { readonly item: TSchema; readonly create: C; readonly update: U }
  /** Fields of PostHog's object that the schemas lack. */
  readonly postHogFields?: PostHogFields
  /** Query parameters of the list, except for paging. */
  readonly filters?: Q
  readonly list?: (
    projectId: number,
    query: PageRequest & QueryValues<Q>,
  ) => Promise<{ count: number; results: readonly T[] }>
  /** Encodes many items at once, so that their flags are read in one call. */
  readonly encode?: (caller: Caller, projectId: number, items: readonly T[]) => Promise<readonly object[]>
  readonly create?: (call: ProjectCall<QuerySpec, Static<C>>) => Promise<Result<T, WireError>>
  readonly update?: (call: ItemCall<T, QuerySpec, Static<U>>) => Promise<Result<T, WireError>>
  /** Adds a PUT, which takes the body of a creation. */
  readonly replace?: {
    readonly summary: string
    readonly update: (call: ItemCall<T, QuerySpec, Static<C>>) => Promise<Result<T, WireError>>
  }
  readonly destroy?: (call: ItemCall<T, QuerySpec, unknown>) => Promise<Result<unknown, WireError>>
  /** Actions that PostHog's tools POST on one item. */
  readonly actions?: readonly ItemAction<T>[]
}

interface ItemAction<T> {
  readonly name: string
  readonly summary: string
  readonly body: TSchema
  /** 201 when the action creates the answered item. */
  readonly status: 200 | 201
  // biome-ignore lint/suspicious/noExplicitAny: `defineItemAction` checks that the body has the type of `body`
  readonly run: (call: ItemCall<T, QuerySpec, any>) => Promise<Result<T, WireError>>
}

export function defineItemAction<T, S extends TSchema>(
  action: Pick<ItemAction<T>, 'name' | 'summary'> & {
    readonly body?: S
    readonly status?: 201
    readonly run: (call: ItemCall<T, QuerySpec, Static<S>>) => Promise<Result<T, WireError>>
  },
): ItemAction<T> {
  return { status: 200, body: Type.Object({}), ...action }
}

export type ResourceDeps = EndpointDeps & {
  readonly management: ResourceStore
  readonly definitionsReady: (revision: number) => Promise<void>
  readonly newUuid: () => string
}

export function resourceRoutes<
  N extends ResourceName,
  T extends Item<N>,
  Q extends QuerySpec,
  C extends TSchema,
  U extends TSchema,
>(deps: ResourceDeps, declared: ResourceEndpoints<N, T, Q, C, U>): ManagementRoute[] {
  const { resource, tag, replace, actions = [] } = declared
  const endpoints = { ...(createPlainEndpoints(deps, resource) as unknown as Required<typeof declared>), ...declared }
  const { schemas, postHogFields } = endpoints
  const noun = resource.replaceAll('_', ' ')
  const aNoun = `${/^[aeiou]/.test(noun) ? 'an' : 'a'} ${noun}`
  const summaries = {
    ...{ list: `List ${noun}s, newest first.`, create: `Create ${aNoun}.`, retrieve: `Get one ${noun}.` },
    ...{ update: `Update fields of ${aNoun}.`, destroy: `Delete ${aNoun}.`, ...declared.summaries },
  }
  const param = `${noun.split(' ').at(-1)}Id`
  const items: ProjectItem<T> = {
    param,
    missing: createNoSuchItemError(resource),
    find: async (projectId, text) => {
      const id = resources[resource].fields.id.kind === 'integer' ? parseIdNumber(text) : text.toLowerCase()
      return id === null
        ? null
        : ((await deps.management.findResource(resource, projectId, id as Item<N>['id'])) as T | null)
    },
  }
  const [read, write] = [`${resource}:read`, `${resource}:write`]
  const answerItem = async (status: number, { caller, project }: ProjectCall<QuerySpec, unknown>, item: T) =>
    answer(status, (await endpoints.encode(caller, project.id, [item]))[0])
  const answerWritten = async (status: number, call: ProjectCall<QuerySpec, unknown>, result: Result<T, WireError>) =>
    result.ok ? answerItem(status, call, result.value) : refusal(result.error)
  const query = { ...pageParams(), ...endpoints.filters }

  return [
    ...projectRoutes(deps, {
      ...{ route: `GET /${tag}`, id: `${tag}_list`, summary: summaries.list, scope: read },
      query,
      success: { status: 200, schema: countedPageSchema(schemas.item) },
      handle: call => {
        const { caller, project } = call
        const asked = call.query as PageRequest & QueryValues<Q>
        return answerCountedList(
          call,
          asked,
          slice => endpoints.list(project.id, { ...asked, ...slice }),
          encodeRowsInBulk(items => endpoints.encode(caller, project.id, items)),
        )
      },
    }),
    ...projectRoutes(deps, {
      ...{ route: `POST /${tag}`, id: `${tag}_create`, summary: summaries.create, scope: write },
      body: schemas.create,
      postHogFields,
      success: { status: 201, schema: schemas.item },
      handle: async call => answerWritten(201, call, await endpoints.create(call)),
    }),
    ...itemRoutes(deps, items, {
      ...{ route: `GET /${tag}/:${param}`, id: `${tag}_retrieve`, summary: summaries.retrieve, scope: read },
      success: { status: 200, schema: schemas.item },
      handle: call => answerItem(200, call, call.item),
    }),
    ...itemRoutes(deps, items, {
      ...{ route: `PATCH /${tag}/:${param}`, id: `${tag}_partial_update`, summary: summaries.update, scope: write },
      body: schemas.update,
      postHogFields,
      success: { status: 200, schema: schemas.item },
      handle: async call => answerWritten(200, call, await endpoints.update(call)),
    }),
    ...(replace === undefined
      ? []
      : itemRoutes(deps, items, {
          ...{ route: `PUT /${tag}/:${param}`, id: `${tag}_update`, summary: replace.summary, scope: write },
          body: schemas.create,
          postHogFields,
          success: { status: 200, schema: schemas.item },
          handle: async call => answerWritten(200, call, await replace.update(call)),
        })),
    ...actions.flatMap(({ name, summary, body, status, run }) =>
      itemRoutes(deps, items, {
        ...{ route: `POST /${tag}/:${param}/${name}`, id: `${tag}_${name}`, summary, scope: write },
        body,
        success: { status, schema: schemas.item },
        handle: async call => answerWritten(status, call, await run(call)),
      }),
    ),
    ...itemRoutes(deps, items, {
      ...{ route: `DELETE /${tag}/:${param}`, id: `${tag}_destroy`, summary: summaries.destroy, scope: write },
      success: { status: 204 },
      handle: async call => {
        const deleted = await endpoints.destroy(call)
        return deleted.ok ? noContent : refusal(deleted.error)
      },
    }),
  ]
}

export function createNoSuchItemError(resource: ResourceName): WireError {
  return createNotFoundError(`The project has no ${resource.replaceAll('_', ' ')} with this id.`)
}

function createPlainEndpoints<N extends ResourceName>(
  { management, definitionsReady, newUuid }: ResourceDeps,
  name: N,
) {
  const resource: Resource = resources[name]
  const readFields = ({ body, project, change }: ProjectCall<QuerySpec, object>) =>
    readBodyFields(resource, body, project, change.atMs)
  const settle = async <V>(write: Promise<Result<Written<V>, unknown>>): Promise<Result<V, WireError>> => {
    const written = await write
    if (!written.ok) return err(written.error === 'not_found' ? createNoSuchItemError(name) : changedAtOnce)
    await definitionsReady(written.value.revision)
    return ok(written.value.value)
  }
  return {
    schemas: { item: buildItemSchema(resource, {}), ...buildBodySchemas(resource, {}) },
    postHogFields: postHogCommonFields,
    filters: {},
    list: (projectId: number, page: PageRequest) => management.listResources(name, projectId, page as ItemQuery<N>),
    encode: async (_caller: Caller, _projectId: number, items: readonly ItemOf<Resource>[]) =>
      items.map(item => encodeItem(resource, item, {})),
    create: async (call: ProjectCall<QuerySpec, object>) => {
      const fields = readFields(call)
      if (!fields.ok) return fields
      const id = resource.fields.id?.kind === 'text' ? { id: newUuid() } : {}
      const item = { ...fields.value, ...id, projectId: call.project.id } as NewItem<N>
      return settle(management.createResource(name, item, {}, call.change))
    },
    update: async (call: ItemCall<Item<N>, QuerySpec, object>) => {
      const fields = readFields(call)
      if (!fields.ok) return fields
      const { change, project, item } = call
      return settle(management.updateResource(name, project.id, item.id, fields.value as Partial<Item<N>>, {}, change))
    },
    destroy: ({ change, project, item }: ItemCall<Item<N>, QuerySpec, unknown>) =>
      settle(management.deleteResource(name, project.id, item.id, {}, change)),
  }
}

/** The fields that the body sets; null removes a value. Times without an offset are in the project's time zone. */
export function readBodyFields<R extends Resource>(
  resource: R,
  body: object,
  { timezone }: Pick<Project, 'timezone'>,
  nowMs: number,
): Result<Partial<ItemOf<R>>, WireError> {
  return readFields(resource, body as JsonObject, (text, name) => readInstant(text, name, { timezone, nowMs }))
}
