// Prints the private API of an OpenAPI document as types for the screens. The generators of the registry need an interface
// of the compiler that TypeScript 7 does not have.

interface Schema {
  readonly $ref?: string
  readonly type?: string | readonly string[]
  readonly const?: unknown
  readonly enum?: readonly unknown[]
  readonly anyOf?: readonly Schema[]
  readonly items?: Schema
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly additionalProperties?: boolean | Schema
}

interface Content {
  readonly content?: Readonly<Record<string, { readonly schema: Schema }>>
}

interface Operation {
  readonly operationId: string
  readonly parameters?: readonly {
    readonly name: string
    readonly in: 'path' | 'query'
    readonly required?: boolean
    readonly schema: Schema
  }[]
  readonly requestBody?: Content & { readonly required?: boolean }
  readonly responses: Readonly<Record<string, Content>>
}

export interface OpenApiDocument {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> }
}

/** Other addresses of the same operations. */
const otherOperations = /^(?:environments|organization|organization_by_id)_/

/** @returns the source of a module, for Biome to format. */
export function printApiTypes({ paths, components }: OpenApiDocument): string {
  const named = new Set<string>(['Error'])
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([, operation]) => isCalledByScreens(path, operation))
      .map(([method, operation]) => `${quote(`${method.toUpperCase()} ${path}`)}: {${printOperation(operation)}}`),
  )
  const schemas: string[] = []
  // Printing one may name others.
  for (const name of named) schemas.push(`${name}: ${printSchema(components.schemas[name]!)}`)
  return `// Printed by \`npm run ui:types\` from the OpenAPI document of this version.

/** What each operation of the private API takes and answers. */
export interface Operations {${operations.join('\n')}}

export interface Schemas {${schemas.sort().join('\n')}}
`

  function isCalledByScreens(path: string, operation: Operation): boolean {
    const isPrivate = 'x-scope' in operation || path.startsWith('/api/session/')
    return isPrivate && !otherOperations.test(operation.operationId)
  }

  function printOperation({ parameters = [], requestBody, responses }: Operation): string {
    const fields = (['path', 'query'] as const).flatMap(place => {
      const ofPlace = parameters.filter(parameter => parameter.in === place)
      const printed = ofPlace.map(({ name, required, schema }) => printField(name, schema, required === true))
      return printed.length === 0 ? [] : [`${place}${place === 'query' ? '?' : ''}: {${printed.join('\n')}}`]
    })
    const body = requestBody?.content?.['application/json']?.schema
    if (body !== undefined) fields.push(`body${requestBody?.required ? '' : '?'}: ${printSchema(body)}`)
    const answers = Object.entries(responses)
      .filter(([status]) => Number(status) < 300)
      .map(([, { content }]) => content?.['application/json']?.schema)
    fields.push(`answer: ${[...new Set(answers.map(answer => (answer ? printSchema(answer) : 'null')))].join(' | ')}`)
    return fields.join('\n')
  }

  function printSchema(schema: Schema): string {
    const { $ref, anyOf, type, properties } = schema
    if ($ref !== undefined) {
      const name = $ref.slice($ref.lastIndexOf('/') + 1)
      named.add(name)
      return `Schemas['${name}']`
    }
    if ('const' in schema) return JSON.stringify(schema.const)
    if (schema.enum !== undefined) return schema.enum.map(value => JSON.stringify(value)).join(' | ')
    if (anyOf !== undefined) return [...new Set(anyOf.map(printSchema))].join(' | ')
    if (Array.isArray(type)) return type.map(one => printSchema({ ...schema, type: one })).join(' | ')
    if (type === 'array') return `(${schema.items === undefined ? 'unknown' : printSchema(schema.items)})[]`
    if (type === 'object' || properties !== undefined) return printObject(schema)
    return (
      { string: 'string', integer: 'number', number: 'number', boolean: 'boolean', null: 'null' }[`${type}`] ??
      'unknown'
    )
  }

  function printObject({ properties = {}, required = [], additionalProperties }: Schema): string {
    const fields = Object.entries(properties).map(([name, schema]) => printField(name, schema, required.includes(name)))
    if (fields.length > 0) return `{${fields.join('\n')}}`
    const values = typeof additionalProperties === 'object' ? printSchema(additionalProperties) : 'unknown'
    return `Record<string, ${values}>`
  }

  function printField(name: string, schema: Schema, isRequired: boolean): string {
    return `${quote(name)}${isRequired ? '' : '?'}: ${printSchema(schema)}`
  }
}

function quote(text: string): string {
  return /^[A-Za-z_$][\w$]*$/.test(text) ? text : JSON.stringify(text)
}
