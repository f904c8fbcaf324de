package api

import (
	"context"
	"strings"

	"connectrpc.com/connect"

	"github.com/boardd/boardd/host/board"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
)

// PutBook writes a logbook.
func (s *service) PutBook(ctx context.Context, r *connect.Request[boarddv1.PutBookRequest]) (*connect.Response[boarddv1.PutBookResponse], error) {
	b, err := s.boardOf(ctx, r.Msg.GetBoard(), "PutBook")
	if err != nil {
		return nil, err
	}
	given := r.Msg.GetBook()
	if given == nil {
		return nil, invalid("book", "want a book with uuid, name and content")
	}
	ifVersion, err := fromIfVersion(r.Msg.Version, "book")
	if err != nil {
		return nil, err
	}
	version, err := b.PutBook(ctx, board.Book{UUID: given.GetUuid(), Name: given.GetName(), Content: given.GetContent()}, ifVersion)
	if err != nil {
		return nil, err
	}
	return answer(&boarddv1.PutBookResponse{Version: toInt64(version)})
}

// GetBook reads a logbook.
func (s *service) GetBook(ctx context.Context, r *connect.Request[boarddv1.GetBookRequest]) (*connect.Response[boarddv1.GetBookResponse], error) {
	b, err := s.boardOf(ctx, r.Msg.GetBoard(), "GetBook")
	if err != nil {
		return nil, err
	}
	book, err := b.Book(ctx, r.Msg.GetUuid())
	if err != nil {
		return nil, err
	}
	return answer(&boarddv1.GetBookResponse{
		Book:    &boarddv1.BookRecord{Uuid: clean(book.UUID), Name: clean(book.Name), Content: book.Content},
		Version: toInt64(book.Version), Source: book.Source,
	})
}

// fromIfVersion reads the version that a book or a schedule has to have; nil: any.
func fromIfVersion(given *int64, what string) (*uint64, error) {
	if given == nil {
		return nil, nil //nolint:nilnil // which says "any"
	}
	if *given < 0 {
		return nil, invalid("version", "want the version that Get%s gave, or 0 for a new %s, got %d", strings.ToUpper(what[:1])+what[1:], what, *given)
	}
	version := uint64(*given)
	return &version, nil
}
