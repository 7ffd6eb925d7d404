import { type ErrorComponentProps, useRouter } from '@tanstack/react-router'
import { ApiError } from '../api/client.ts'
import { ErrorState } from '../components/states/states.tsx'

/** In place of a screen that could not be shown. */
export function Failed({ error }: ErrorComponentProps) {
  const router = useRouter()
  if (!(error instanceof ApiError))
    return (
      <ErrorState
        title="This screen has failed"
        onRetry={() => location.reload()}
        details={error instanceof Error ? `${error.stack}` : String(error)}
      >
        It is a fault of Pennon’s screens. Nothing was changed.
      </ErrorState>
    )
  return <ErrorState title="This screen could not be loaded" error={error} onRetry={() => void router.invalidate()} />
}
