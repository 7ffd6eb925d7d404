// What was read from the private API, and how failed reads are tried again.

import { QueryClient } from '@tanstack/react-query'
import { ApiError } from './client.ts'

const triesMax = 3

export const queries = new QueryClient({
  defaultOptions: {
    // A server on this machine answers without a network, and nothing is kept to be written later.
    mutations: { networkMode: 'always' },
    queries: {
      networkMode: 'always',
      // Only what may succeed: the server said so, or it did not answer.
      retry: (failedCount, error) => failedCount < triesMax && error instanceof ApiError && mayPass(error),
      retryDelay: (failedCount, error) =>
        error instanceof ApiError && error.retryAtMs !== undefined
          ? Math.max(0, error.retryAtMs - Date.now())
          : Math.min(8_000, 500 * 2 ** failedCount) * (0.5 + Math.random() / 2),
    },
  },
})

function mayPass({ status }: ApiError): boolean {
  return status === 0 || status >= 502
}
