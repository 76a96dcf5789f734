package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"bireme.dev/bireme/internal/store/sqlstore"
)

// Inspect returns what the database that url names says of itself. Nothing is changed in it.
func Inspect(ctx context.Context, url string) (sqlstore.Facts, error) {
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return sqlstore.Facts{}, fmt.Errorf("store: %w", err)
	}
	defer pool.Close()
	return sqlstore.Inspect(ctx, &engine{pool: pool})
}
