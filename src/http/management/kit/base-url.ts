// The address at which a caller reaches this instance; absolute addresses in answers begin with it.

import type { FastifyRequest } from 'fastify'
import { removeIpv4Mapping } from '#wire/address/client-address.ts'
import type { TrustedProxies } from '#wire/address/trusted-proxies.ts'

/** Scheme, host and the path prefix that a proxy strips, without a final slash; '' makes addresses relative. */
export type GetBaseUrl = (request: FastifyRequest) => string

const hostForm = /^[A-Za-z0-9.:[\]_-]{1,255}$/
const prefixForm = /^(?:\/[A-Za-z0-9._~-]+){1,16}\/?$/

/**
 * Uses `publicUrl` if set; otherwise the request's own Host, or the `X-Forwarded-Host` and `X-Forwarded-Prefix` of a
 * trusted proxy. `X-Forwarded-Proto: https` is believed from any client: it affects only where that caller's next request
 * goes.
 */
export function createBaseUrl(publicUrl: string | null, trustedProxies: TrustedProxies): GetBaseUrl {
  return request => {
    if (publicUrl !== null) return publicUrl
    const { headers } = request
    const isTrusted = trustedProxies.trusts(removeIpv4Mapping(request.socket.remoteAddress ?? ''))
    const readForwardedHeader = (name: string, form: RegExp) => {
      const first = isTrusted ? [headers[name] ?? ''].flat().join(',').split(',', 1)[0]!.trim() : ''
      return form.test(first) ? first : null
    }
    const host = readForwardedHeader('x-forwarded-host', hostForm) ?? headers.host ?? ''
    const prefix = readForwardedHeader('x-forwarded-prefix', prefixForm)?.replace(/\/$/, '') ?? ''
    if (!hostForm.test(host)) return prefix
    const scheme = headers['x-forwarded-proto'] === 'https' ? 'https' : request.protocol
    return `${scheme}://${host}${prefix}`
  }
}

const bases = new WeakMap<FastifyRequest, GetBaseUrl>()

/** Call this before the request is handled. */
export function rememberBaseUrl(request: FastifyRequest, base: GetBaseUrl): void {
  bases.set(request, base)
}

export function readBaseUrl(request: FastifyRequest): string {
  return bases.get(request)!(request)
}
